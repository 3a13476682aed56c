//! Who may what: roles, users with passwords, tokens, sessions of browsers, attempts to guess.

mod attempts;
mod gate;
mod known;
mod order;
mod origin;
mod password;
mod role;
mod sessions;
#[cfg(test)]
mod tests;
mod users;
mod users_edit;

pub use gate::{AccessTerms, LoginTrial, WebAccess, WebCaller, WebCredential, WebOwner, WebTls};
pub use known::{KnownWebToken, KnownWebUser};
pub use order::{LoginRequest, WebDeliveryOrder, WebOrder};
pub use origin::{check_address, check_post};
pub use password::{PASSWORD_MAX, PASSWORD_MIN, PasswordHash};
pub use role::WebRole;
pub use sessions::SESSIONS_MAX;
pub use users::{WebUsers, WebUsersError};
pub use users_edit::{
    WebTokenTerms, WebUserTerms, web_tokens, web_users, with_password, with_web_token,
    with_web_user, without_web_token, without_web_user,
};
