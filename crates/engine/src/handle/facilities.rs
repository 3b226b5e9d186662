//! What the sessions of one process share besides the image: locks' names, watches, the warden.

use std::sync::{Arc, OnceLock};

use perilune_shm::fork::ForkMark;
use perilune_store::Result;

use crate::background::BackgroundThread;
use crate::image::Image;
use crate::lock::Locks;
use crate::open::Attachment;
use crate::watch::Watches;
use crate::{maintenance, warden};

/// Of one process. A forked child has its own, made on first use.
pub(super) struct Facilities {
    mark: ForkMark,
    pub(super) locks: Locks,
    pub(super) watches: Arc<Watches>,
    /// Sweep for dead processes, flush and take checkpoints; readers of a read-only database have none.
    _threads: Vec<BackgroundThread>,
    heir: OnceLock<Arc<Facilities>>,
}

impl Facilities {
    pub(super) fn new(attachment: &Attachment) -> Result<Arc<Facilities>> {
        let image = attachment.image()?;
        let mut threads = Vec::new();
        if !image.read_only {
            for start in [warden::start, maintenance::flushing, maintenance::checkpointing] {
                threads.push(start(image.clone())?);
            }
        }
        Ok(Facilities::with(image, threads))
    }

    /// Without threads.
    #[cfg(feature = "instrument")]
    pub(super) fn threadless(attachment: &Attachment) -> Result<Arc<Facilities>> {
        Ok(Facilities::with(attachment.image()?, Vec::new()))
    }

    fn with(image: &Arc<Image>, threads: Vec<BackgroundThread>) -> Arc<Facilities> {
        Arc::new(Facilities {
            mark: ForkMark::current(),
            locks: Locks::new(image.clone()),
            watches: Arc::new(Watches::new(image.clone())),
            _threads: threads,
            heir: OnceLock::new(),
        })
    }

    /// Those of the calling process.
    pub(super) fn here(self: &Arc<Self>, attachment: &Attachment) -> Result<Arc<Facilities>> {
        if self.mark.is_same_process() {
            return Ok(self.clone());
        }
        if let Some(heir) = self.heir.get() {
            return heir.here(attachment);
        }
        let heir = Facilities::new(attachment)?;
        self.heir.get_or_init(|| heir).here(attachment)
    }
}
