//! One declaration for each key: its type, default and meaning make the parser and the
//! documentation.

/// One key of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConfigKey {
    /// The name in the file.
    pub name: &'static str,
    /// What happens where it is left out.
    pub presence: Presence,
    /// What it means, its unit and the reason of its default.
    pub meaning: &'static str,
}

/// What happens where a key is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// The file is refused.
    Required,
    /// The meaning says what is done instead.
    Optional,
    /// This value is used.
    Default(&'static str),
}

/// One table of a configuration file.
#[derive(Debug, Clone, Copy)]
pub struct ConfigTable {
    /// As it is written: `[node]`, `[[channel]]`.
    pub heading: &'static str,
    /// What the table is for.
    pub meaning: &'static str,
    /// When a running node uses a change.
    pub applies: Applies,
    /// Its keys, in the order of the documentation.
    pub keys: &'static [ConfigKey],
}

/// When a change of a table is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applies {
    /// When the node starts the next time.
    AtStart,
    /// When the node reads its file again, on SIGHUP.
    AtOnce,
    /// These keys when the node reads its file again, the others when it starts.
    AtOnceOnly(&'static [&'static str]),
    /// With the next command: no node reads the file.
    NextCommand,
}

impl Applies {
    /// Whether a running node uses a change of this key.
    pub fn is_at_once(self, key: &str) -> bool {
        match self {
            Self::AtOnce => true,
            Self::AtOnceOnly(keys) => keys.contains(&key),
            Self::AtStart | Self::NextCommand => false,
        }
    }
}

/// A sentence of the documentation.
impl std::fmt::Display for Applies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::AtStart => f.write_str("Changes apply at the next start."),
            Self::AtOnce => f.write_str("Changes apply at once on SIGHUP."),
            Self::AtOnceOnly(keys) => {
                let keys: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
                let [first @ .., last] = &keys[..] else { return Ok(()) };
                let listed = match first {
                    [] => last.clone(),
                    first => format!("{} and {last}", first.join(", ")),
                };
                write!(
                    f,
                    "Changes of {listed} apply at once on SIGHUP, all others at the next start."
                )
            }
            Self::NextCommand => f.write_str("The next command uses a change."),
        }
    }
}

/// Declares a table's struct: `key: Type => required`, `=> optional` or `=> "default in text
/// form"`. Changes apply at the next start, unless `applies` says what applies at once.
macro_rules! section {
    (
        $(#[doc = $about:literal])+
        $heading:literal $name:ident
        $(applies $applies:ident $(($($at_once:ident),+))?)? $(checked by $check:path)? {
            $( $(#[doc = $meaning:literal])+ $field:ident : $ty:ty => $kind:tt, )+
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct $name {
            $( $(#[doc = $meaning])+ pub $field: $crate::section::section!(@type $ty,
                $kind), )+
        }

        impl $name {
            pub(super) const TABLE: $crate::ConfigTable = $crate::ConfigTable {
                heading: $heading,
                meaning: concat!($($about),+),
                applies: $crate::section::section!(@applies $($applies $($($at_once)+)?)?),
                keys: &[ $( $crate::ConfigKey {
                    name: $crate::section::plain(stringify!($field)),
                    presence: $crate::section::section!(@presence $kind),
                    meaning: concat!($($meaning),+),
                } ),+ ],
            };
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                #[derive(serde::Deserialize)]
                #[serde(deny_unknown_fields)]
                struct Written {
                    $( $field: Option<$ty>, )+
                }
                let written = Written::deserialize(deserializer)?;
                let section = Self {
                    $( $field: $crate::section::section!(@take written, $field, $ty,
                        $kind), )+
                };
                $( $check(&section).map_err(serde::de::Error::custom)?; )?
                Ok(section)
            }
        }
    };
    (@applies) => { $crate::Applies::AtStart };
    (@applies at_once) => { $crate::Applies::AtOnce };
    (@applies at_once $($key:ident)+) => {
        $crate::Applies::AtOnceOnly(&[ $(stringify!($key)),+ ])
    };
    (@applies next_command) => { $crate::Applies::NextCommand };
    (@type $ty:ty, optional) => { Option<$ty> };
    (@type $ty:ty, $kind:tt) => { $ty };
    (@presence required) => { $crate::Presence::Required };
    (@presence optional) => { $crate::Presence::Optional };
    (@presence $default:literal) => { $crate::Presence::Default($default) };
    (@take $from:ident, $field:ident, $ty:ty, required) => {
        $from.$field.ok_or_else(|| {
            serde::de::Error::missing_field($crate::section::plain(stringify!($field)))
        })?
    };
    (@take $from:ident, $field:ident, $ty:ty, optional) => { $from.$field };
    (@take $from:ident, $field:ident, $ty:ty, $default:literal) => {
        match $from.$field {
            Some(value) => value,
            None => $default.parse::<$ty>().expect("a default is in its key's own text form"),
        }
    };
}
pub(crate) use section;

/// The name of a key whose field is written with `r#`, because it is a word of the language.
pub(super) const fn plain(field: &'static str) -> &'static str {
    match field.as_bytes() {
        [b'r', b'#', ..] => field.split_at(2).1,
        _ => field,
    }
}

/// A table that is left out: every key has a default.
pub(super) fn left_out<T: serde::de::DeserializeOwned>() -> T {
    toml::from_str("").expect("a table that may be left out has no required key")
}
