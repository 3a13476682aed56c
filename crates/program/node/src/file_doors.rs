//! Channels for files over a node's sessions, whichever end called.

use skyhaul_channels_io::{AppChannel, AppChannelError, ChannelService};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::OnceLock;
use std::task::Poll;

/// The services of channels for files: over the sessions with nodes that this one calls, and over
/// those with peers that called.
#[derive(Debug, Default)]
pub struct FileDoors {
    calling: OnceLock<ChannelService>,
    called: OnceLock<ChannelService>,
}

impl FileDoors {
    /// The service over the sessions that this node calls for.
    pub fn calls_peers(&self, service: ChannelService) {
        // A node has one of each.
        let _ = self.calling.set(service);
    }

    /// The service over the sessions of peers that call.
    pub fn called_by_peers(&self, service: ChannelService) {
        let _ = self.called.set(service);
    }

    /// How many sessions with the node of this name have opened, whichever end called.
    pub fn openings(&self, node: &str) -> u64 {
        let services = [self.calling.get(), self.called.get()].into_iter().flatten();
        services.map(|service| service.openings(node)).sum()
    }

    /// Opens a channel to the node of this name, as soon as one of the two has a session with it.
    /// Its blocks are of `class`, or of the default one if the session has none of that name.
    ///
    /// # Errors
    /// The node ends, or the session has as many channels as it may.
    pub async fn connect(&self, node: &str, class: &str) -> Result<AppChannel, AppChannelError> {
        let services = [self.calling.get(), self.called.get()].into_iter().flatten();
        let mut attempts: Vec<Pin<Box<_>>> =
            services.map(|service| Box::pin(service.connect_to(node, class))).collect();
        poll_fn(|context| {
            let mut ended = None;
            attempts.retain_mut(|attempt| match attempt.as_mut().poll(context) {
                Poll::Pending => true,
                Poll::Ready(outcome) => {
                    // A channel beats a refusal of the other service.
                    if !matches!(ended, Some(Ok(_))) {
                        ended = Some(outcome);
                    }
                    false
                }
            });
            match ended {
                Some(Ok(channel)) => Poll::Ready(Ok(channel)),
                Some(Err(error)) if attempts.is_empty() => Poll::Ready(Err(error)),
                _ => Poll::Pending,
            }
        })
        .await
    }
}
