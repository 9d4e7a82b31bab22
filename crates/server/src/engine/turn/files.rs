//! Artifacts that hold files.

use nuncio_protocol::{Artifact, ArtifactId, Content, Part};

use super::Turn;
use crate::agent::AgentError;
use crate::artifact::{FileContent, Place};

impl Turn {
    /// Hands over a file as an artifact of its own. A large one is kept beside the log, and the event says where.
    pub async fn file(
        &mut self,
        name: &str,
        media_type: &str,
        content: impl Into<FileContent>,
    ) -> Result<(), AgentError> {
        let mut part = Part {
            filename: name.into(),
            media_type: media_type.into(),
            ..Part::from(Content::Raw(bytes::Bytes::new()))
        };
        let artifact_id = ArtifactId::fresh();
        let artifacts = self.engine.options.artifacts.clone();
        self.stored().await?;
        artifacts.fill(&self.place(&artifact_id, 0), &mut part, content.into()).await?;
        let artifact = Artifact { artifact_id, name: name.into(), parts: vec![part], ..Artifact::default() };
        let update = self.presenter.artifact(artifact, false, true);
        self.emit(update).await
    }

    /// Puts the large contents of an artifact beside the log.
    pub(super) async fn keep_apart(&self, mut artifact: Artifact, append: bool) -> Result<Artifact, AgentError> {
        let artifacts = &self.engine.options.artifacts;
        if !artifacts.is_large(&artifact) {
            return Ok(artifact);
        }
        self.stored().await?;
        let before = if append { self.parts_of(&artifact.artifact_id) } else { 0 };
        for (n, part) in artifact.parts.iter_mut().enumerate() {
            artifacts.attach(&self.place(&artifact.artifact_id, before + n), part).await?;
        }
        Ok(artifact)
    }

    /// Files belong to a task that the store knows.
    async fn stored(&self) -> Result<(), AgentError> {
        self.live.durable(1).await.map_err(|_| AgentError::Stopped)
    }

    fn parts_of(&self, id: &ArtifactId) -> usize {
        let count = |task: &nuncio_protocol::Task| {
            task.artifacts.iter().find(|known| known.artifact_id == *id).map_or(0, |known| known.parts.len())
        };
        self.live.read(count).0
    }

    fn place<'a>(&'a self, artifact: &'a ArtifactId, part: usize) -> Place<'a> {
        let live = &self.live;
        Place { tenant: &live.scope.tenant, key: live.key(), id: &live.id, artifact: artifact.as_str(), part }
    }
}
