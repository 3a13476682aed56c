//! What says who comes to the page of a node: users files, hashes, cookies, the bodies of POST.

use skyhaul_serve::{ServeMethod, ServeRequest};
use skyhaul_web::access::{
    LoginRequest, PasswordHash, WebCredential, WebOrder, WebTls, WebUsers, check_address,
    check_post, web_tokens, web_users, without_web_token, without_web_user,
};

/// A text as a users file, a hash, headers, an address and a body: read, or refused.
pub fn web_access(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    if WebUsers::parse(&text).is_ok() {
        for user in web_users(&text).unwrap_or_default() {
            if let Ok(without) = without_web_user(&text, &user.name) {
                let left = web_users(&without).unwrap_or_default();
                assert!(left.iter().all(|other| other.name != user.name));
            }
        }
        for token in web_tokens(&text).unwrap_or_default() {
            if let Ok(without) = without_web_token(&text, &token.name) {
                let left = web_tokens(&without).unwrap_or_default();
                assert!(left.iter().all(|other| other.name != token.name));
            }
        }
    }
    if let Some(hash) = PasswordHash::parse(&text) {
        assert_eq!(PasswordHash::parse(&hash.to_text()), Some(hash));
    }
    let post = |target: &str| ServeRequest::new(ServeMethod::Post, target).ok();
    for target in [&*text, "/api/v1/alarms/x/ack", "/api/v1/session"] {
        let Some(mut request) = post(target) else { continue };
        request.body = input.to_vec();
        for name in ["cookie", "authorization", "origin", "host", "content-type"] {
            request.headers.insert(name.to_owned(), text.to_string());
        }
        let credential = WebCredential::of(&request, "skyhaul-8480");
        let _ = check_post(&request, &credential, WebTls::Here);
        let _ = check_address(&request);
        let _ = LoginRequest::read(&request);
        assert!(WebOrder::read(&request).is_err() || WebOrder::is_at(&request));
    }
}
