#!/bin/busybox sh
# The first program of the second kernel: it loads what is beside it, lays memory over the machine's
# files, and has them run the job. What the job came to is said on the second serial line.
b=/bin/busybox
$b mount -t proc proc /proc
$b mount -t sysfs sysfs /sys
$b mount -t devtmpfs devtmpfs /dev
for module in /modules/*; do
    $b insmod "$module" || echo "$module could not be loaded"
done
$b mount -t tmpfs -o size=75% tmpfs /memory
$b mkdir /memory/files /memory/work
$b mount -t 9p -o ro,trans=virtio,version=9p2000.L,cache=loose,msize=524288 machine /machine
$b mount -t overlay -o lowerdir=/machine,upperdir=/memory/files,workdir=/memory/work overlay /root
for folder in proc sys dev; do
    $b mount --move "/$folder" "/root/$folder"
done
$b mount -t tmpfs tmpfs /root/run
$b mount -t tmpfs tmpfs /root/sys/fs/cgroup
$b mkdir -p /root/dev/pts /root/dev/shm
$b mount -t devpts devpts /root/dev/pts
$b mount -t tmpfs tmpfs /root/dev/shm
$b cp /job /root/run/job
$b ip link set lo up
# What qemu calls its own network: this guest, and the way on.
$b ip link set eth0 up
$b ip addr add 10.0.2.15/24 dev eth0
$b ip route add default via 10.0.2.2
exec $b switch_root /root /bin/sh /run/job
