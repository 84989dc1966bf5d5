package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	cmtcfg "github.com/cometbft/cometbft/config"
	"github.com/cometbft/cometbft/node"
	sm "github.com/cometbft/cometbft/state"
	cmttypes "github.com/cometbft/cometbft/types"
	dbm "github.com/cosmos/cosmos-db"
	"github.com/cosmos/cosmos-sdk/server"
	genutiltypes "github.com/cosmos/cosmos-sdk/x/genutil/types"
	"github.com/spf13/cobra"
)

// restoreLocal is Sei's switch `[statesync] use-local-snapshot`: a node without
// blocks restores the newest snapshot of its own volume and asks no peer for one.
// What it has restored must be what the light client finds at that height, as
// with a peer's. The SDK has both halves, and no switch.
func restoreLocal(cmd *cobra.Command) error {
	ctx := server.GetServerContextFromCmd(cmd)
	cfg := ctx.Config
	if !cfg.StateSync.Enable || !ctx.Viper.GetBool("statesync.use_local_snapshot") {
		return nil
	}
	// Peers are asked for blocks only, whether there is something to restore or not.
	cfg.StateSync.Enable = false
	if empty, err := hasNoBlocks(cfg); err != nil || !empty {
		return err
	}
	height, hash, err := restoreNewest(ctx)
	if err != nil {
		return err
	}
	genesis := func() (*cmttypes.GenesisDoc, error) {
		app, err := genutiltypes.AppGenesisFromFile(cfg.GenesisFile())
		if err != nil {
			return nil, err
		}
		return app.ToGenesisDoc()
	}
	ctx.Logger.Info("restored a local snapshot", "height", height)
	return node.BootstrapStateWithGenProvider(context.Background(), cfg, cmtcfg.DefaultDBProvider, genesis, uint64(height), hash)
}

func hasNoBlocks(cfg *cmtcfg.Config) (bool, error) {
	db, err := cmtcfg.DefaultDBProvider(&cmtcfg.DBContext{ID: "state", Config: cfg})
	if err != nil {
		return false, err
	}
	store := sm.NewStore(db, sm.StoreOptions{})
	defer store.Close()
	state, err := store.Load()
	return state.IsEmpty(), err
}

// restoreNewest gives the application the newest snapshot's state, unless an
// attempt before this one did.
func restoreNewest(ctx *server.Context) (int64, []byte, error) {
	db, err := dbm.NewDB("application", server.GetAppDBBackend(ctx.Viper), filepath.Join(ctx.Config.RootDir, "data"))
	if err != nil {
		return 0, nil, err
	}
	a := newApp(ctx.Logger, db, ctx.Viper)
	defer a.Close()
	last := func() (int64, []byte) {
		id := a.CommitMultiStore().LastCommitID()
		return id.Version, id.Hash
	}
	if height, hash := last(); height > 0 {
		return height, hash, nil
	}
	known, err := a.SnapshotManager().List()
	if err != nil {
		return 0, nil, err
	}
	folder := filepath.Join(ctx.Config.RootDir, "data", "snapshots")
	newest := -1
	for i, s := range known {
		// metadata.db comes from who made the snapshot, and speaks of others that did not come along.
		_, missing := os.Stat(filepath.Join(folder, fmt.Sprint(s.Height), fmt.Sprint(s.Format)))
		if missing == nil && (newest < 0 || s.Height > known[newest].Height) {
			newest = i
		}
	}
	if newest < 0 {
		return 0, nil, fmt.Errorf("use-local-snapshot is set, and there is no snapshot in %s", folder)
	}
	if err := a.SnapshotManager().RestoreLocalSnapshot(known[newest].Height, known[newest].Format); err != nil {
		return 0, nil, err
	}
	height, hash := last()
	return height, hash, nil
}
