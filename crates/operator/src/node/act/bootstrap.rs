//! The bootstrap Job: deployed, waited for, and gone with its pod before the node's own pod comes.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Service;
use keelson_cluster::{Key, Only, Propagation};
use keelson_plan::{Task, Waiting};
use keelson_render::{Node, bootstrap, names, service};
use kube::ResourceExt;
use kube::api::ApiResource;

use super::{Act, Done, Problem, note};
use crate::node::seen::{Identity, Plain, SeenJob};
use crate::node::sight::at;

impl Act<'_> {
    pub(super) async fn deploy_bootstrap_service(&self) -> Done {
        if let Some(seen) = &self.sight.service
            && seen.identity.bootstrap
            && !seen.identity.leaving
        {
            return Ok(());
        }
        let read = self.rendered()?;
        let resource = ApiResource::erase::<Service>(&());
        let wanted = service::bootstrap(&read);
        let object = self.calls.apply_as(&resource, &wanted).await?;
        note(&self.world.services, &object, Plain::read(&object));
        Ok(())
    }

    pub(super) async fn deploy_bootstrap_job(&self) -> Done {
        if let Some(job) = &self.sight.job {
            if job.failed.is_none() && !job.identity.leaving {
                return Ok(());
            }
            self.delete_job(&job.identity).await?;
            return Err(self.waiting_for_job());
        }
        let job = bootstrap::job(&self.rendered()?, &self.settings.render);
        let job = job.map_err(|error| Problem::fatal(error.to_string()))?;
        match self.calls.create(&job).await? {
            None => Err(self.waiting_for_job()),
            Some(job) => {
                let version = job.resource_version().unwrap_or_default();
                let jobs = &self.world.jobs;
                jobs.note(Key::of(&job), &version, SeenJob::read(&job));
                Ok(())
            }
        }
    }

    pub(super) fn await_bootstrap(&self) -> Done {
        match self.bootstrap_is_over()? {
            true => Ok(()),
            false => Err(self.waiting_for_job()),
        }
    }

    /// Whether the Job is complete. A pod of it completes only after all it was to be told, since its
    /// process is approved last; one that was approved before a crash approves itself.
    pub(super) fn bootstrap_is_over(&self) -> Result<bool, Problem> {
        match self.sight.job.as_deref() {
            Some(SeenJob { complete: true, .. }) => Ok(true),
            Some(SeenJob {
                failed: Some(why), ..
            }) => Err(Problem::fatal(format!("the bootstrap Job failed: {why}"))),
            Some(_) => Ok(false),
            None => Err(Problem::fatal(
                "the bootstrap Job is gone before it was seen to complete",
            )),
        }
    }

    /// Complete when the Job, its pods and its Service are gone: the volume is for one pod at a time.
    pub(super) async fn teardown_bootstrap(&self) -> Done {
        if let Some(job) = &self.sight.job
            && !job.identity.leaving
        {
            self.delete_job(&job.identity).await?;
            self.pass(Task::TeardownBootstrap).await;
        }
        let leftover = self.sight.service.as_ref();
        if let Some(leftover) = leftover.filter(|it| it.identity.bootstrap) {
            let name = names::service(&self.key.name);
            let only = only(&leftover.identity);
            let (namespace, how) = (&self.key.namespace, Propagation::Background);
            self.calls
                .delete::<Service>(namespace, &name, only, how)
                .await?;
            self.world
                .services
                .gone(&at(self.key, name), &leftover.identity.uid);
        }
        if let Some(pod) = &self.sight.bootstrap_pod {
            return Err(Waiting::PodGone {
                pod: pod.name.clone(),
            }
            .into());
        }
        match &self.sight.job {
            Some(_) => Err(self.waiting_for_job()),
            None => Ok(()),
        }
    }

    async fn delete_job(&self, identity: &Identity) -> Done {
        let name = names::bootstrap_job(&self.key.name);
        let (namespace, how) = (&self.key.namespace, Propagation::Foreground);
        self.calls
            .delete::<Job>(namespace, &name, only(identity), how)
            .await?;
        Ok(())
    }

    fn rendered(&self) -> Result<Node<'_>, Problem> {
        Node::read(self.node).map_err(|error| Problem::fatal(error.to_string()))
    }

    fn waiting_for_job(&self) -> Problem {
        Waiting::Bootstrap {
            job: names::bootstrap_job(&self.key.name),
        }
        .into()
    }
}

fn only(identity: &Identity) -> Only {
    Only {
        uid: Some(identity.uid.clone()),
        version: None,
    }
}
