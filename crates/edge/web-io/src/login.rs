//! Logins: a password is compared in a thread of its own, one at a time.

use crate::desk::AccessNews;
use crate::shared::WebShared;
use skyhaul_net::random;
use skyhaul_serve::{NewToken, ServeAnswer, ServeRequest};
use skyhaul_web::access::LoginRequest;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Logins that are compared or wait: more would wait longer than a person does.
const WAITING_MAX: u32 = 16;

/// Compares a password, and begins a session.
pub async fn log_in(
    shared: &Arc<WebShared>,
    asked: &ServeRequest,
    peer: IpAddr,
) -> Result<ServeAnswer, ServeAnswer> {
    let login = LoginRequest::read(asked)?;
    let place = WaitingPlace::take(shared)?;
    let trial = shared.access().begin_login(&login, peer, shared.clock.now())?;
    let busy = || ServeAnswer::problem(503, "the node ends");
    let turn = shared.logins.clone().acquire_owned().await.map_err(|_| busy())?;
    let (of, news) = (shared.clone(), shared.desk.clone());
    let compared = tokio::task::spawn_blocking(move || {
        // As long as the password is compared, also when its client has gone.
        let (_turn, _place) = (turn, place);
        let is_it = trial.hash.is_of(&login.password);
        let answer = match is_it {
            true => {
                let secret = random().map_err(|_| {
                    ServeAnswer::problem(500, "this host has no random numbers; see the log")
                })?;
                let secret = NewToken::from_random(secret);
                of.access().log_in(&trial, secret.secret(), of.time())
            }
            false => Err(of.access().login_failed()),
        };
        let (user, address) = (trial.user, trial.address);
        match &answer {
            Ok(_) => news.note(AccessNews::LoggedIn { user, address }),
            Err(_) if trial.shuts => news.note(AccessNews::Shut { user, address }),
            Err(_) => {}
        }
        answer
    });
    compared.await.map_err(|_| ServeAnswer::problem(500, "the password cannot be compared"))?
}

/// A place among the logins that wait.
struct WaitingPlace(Arc<WebShared>);

impl WaitingPlace {
    fn take(shared: &Arc<WebShared>) -> Result<Self, ServeAnswer> {
        let more = |waiting: u32| (waiting < WAITING_MAX).then_some(waiting + 1);
        let waiting = &shared.logins_waiting;
        let taken = waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        taken.map(|_| Self(shared.clone())).map_err(|_| {
            let what = "too many log in at a time; try again";
            ServeAnswer::problem(503, what).header("retry-after", "2")
        })
    }
}

impl Drop for WaitingPlace {
    fn drop(&mut self) {
        self.0.logins_waiting.fetch_sub(1, Ordering::Relaxed);
    }
}
