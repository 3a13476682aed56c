//! The products of one contact while it is read: Level-0 and, where wanted, the CADU file.

use crate::centre::archive::Archive;
use crate::centre::files::ProductFiles;
use crate::status::ProductStatus;
use skyhaul_ccsds::mission::Mission;
use skyhaul_ccsds::quality::CapturedFrame;
use skyhaul_config::ProductRules;
use skyhaul_level0::report::{ContactInput, Product};
use skyhaul_level0::{ContactClose, ContactInfo, ContactProcessor, Form, Limits, ProductRuleSet};
use std::io;
use std::path::Path;

/// Makes the products of one contact.
pub struct ContactProducts {
    rules: ProductRules,
    attempt: ProductAttempt,
    /// The name of its unfinished files.
    work: String,
    level0: Option<ContactProcessor<ProductFiles>>,
    archive: Option<Archive>,
    /// Why products cannot be written. The contact is read to its end all the same, for status.
    unwritten: Option<String>,
}

/// Whether products of a contact were tried before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProductAttempt {
    /// They were not.
    First,
    /// They could not be written: this attempt ends at the first file that cannot be written.
    Again,
}

impl ContactProducts {
    /// Products after these rules; `work` is the name of the contact's unfinished files, its own.
    pub const fn new(rules: ProductRules, attempt: ProductAttempt, work: String) -> Self {
        Self { rules, attempt, work, level0: None, archive: None, unwritten: None }
    }

    /// The rules.
    pub const fn rules(&self) -> &ProductRules {
        &self.rules
    }

    /// Whether they were tried before.
    pub const fn attempt(&self) -> ProductAttempt {
        self.attempt
    }

    /// Why they cannot be written.
    pub fn unwritten(&self) -> Option<&str> {
        self.unwritten.as_deref()
    }

    /// Begins the products of contact number `flow`, which may complete another one.
    ///
    /// # Errors
    /// The folder refuses, again.
    pub fn begin(
        &mut self,
        info: ContactInfo,
        mission: &Mission,
        flow: u32,
        completes: Option<u32>,
    ) -> Result<(), String> {
        if !self.rules.enabled {
            return Ok(());
        }
        let begun = self.try_begin(info, mission, flow, completes);
        let refused = begun.map_err(|error| unwritable(&self.rules.products.dir, error));
        refused.or_else(|reason| self.give_up(reason))
    }

    fn try_begin(
        &mut self,
        info: ContactInfo,
        mission: &Mission,
        flow: u32,
        completes: Option<u32>,
    ) -> io::Result<()> {
        let files = ProductFiles::new(&self.rules.products.dir, &self.work)?;
        if self.rules.products.cadu_files {
            self.archive = Some(Archive::begin(files.clone(), mission)?);
        }
        let names = mission.products().iter().map(|group| group.name.as_str());
        let rules = match completes {
            // Its packets are published with those of the contact that it completes.
            Some(_) => ProductRuleSet { form: Form::Account, ..ProductRuleSet::default() },
            None => self.rules.session(mission.name(), names),
        };
        let expedited = match completes {
            // What completes a contact comes long after it.
            Some(_) => Vec::new(),
            None => self.rules.expedited(mission.name(), flow),
        };
        self.level0 = Some(
            ContactProcessor::new(mission, info, Limits::default(), files)
                .with_rules(rules)
                .with_expedited(expedited),
        );
        Ok(())
    }

    /// Takes a frame. Without Level-0 it goes nowhere: the contact's first block, which names its
    /// mission, was lost at the station; its frames stay in the store.
    ///
    /// # Errors
    /// Products cannot be written, again.
    pub fn frame(&mut self, frame: &CapturedFrame) -> Result<(), String> {
        let archived = self.archive.as_mut().map_or(Ok(()), |archive| archive.frame(frame));
        let archived = archived.map_err(|error| unwritable(&self.rules.products.dir, error));
        let sorted = self.level0.as_mut().map_or(Ok(()), |level0| level0.frame(frame));
        let sorted =
            sorted.map_err(|error| unwritable(&self.rules.products.dir, without_help(&error)));
        archived.and(sorted).or_else(|reason| self.give_up(reason))
    }

    /// What each of several inputs of the station gave.
    pub fn inputs(&mut self, inputs: Vec<ContactInput>) {
        if let Some(level0) = &mut self.level0 {
            level0.inputs(inputs);
        }
    }

    /// Expedited data sets that were published since the last call.
    pub fn expedited(&mut self) -> Vec<Product> {
        self.level0.as_mut().map_or(Vec::new(), ContactProcessor::expedited)
    }

    /// Publishes the products of the contact; none where none are wanted.
    ///
    /// # Errors
    /// They could not be written.
    pub fn finish(&mut self, close: ContactClose) -> Result<Vec<Product>, String> {
        if !self.rules.enabled {
            return Ok(Vec::new());
        }
        let (dir, name) = (&self.rules.products.dir, &self.work);
        let level0 = self.level0.take().ok_or("the contact has no opening record")?;
        let products =
            level0.finish(close).map_err(|error| unwritable(dir, without_help(&error)))?;
        if let Some(archive) = self.archive.take() {
            archive.publish(&format!("{name}.cadu")).map_err(|error| unwritable(dir, error))?;
        }
        ProductFiles::clean(dir, name);
        Ok(products)
    }

    /// The status of a product.
    pub fn shown(&self, product: &Product) -> ProductStatus {
        let accounting = &product.sidecar.accounting;
        // Where no packet could be delivered, the account says why.
        let file = product.sidecar.product.packet_file.as_ref().or(product.files.last());
        ProductStatus {
            path: file
                .map(|file| self.rules.products.dir.join(&file.name).display().to_string())
                .unwrap_or_default(),
            sha256: file.map(|file| file.sha256.clone()).unwrap_or_default(),
            packets: accounting.delivered,
            gaps: accounting.gaps,
        }
    }

    /// Goes on without products. A second attempt stops instead: it would show nothing new.
    fn give_up(&mut self, reason: String) -> Result<(), String> {
        if self.attempt == ProductAttempt::Again {
            return Err(reason);
        }
        (self.archive, self.level0) = (None, None);
        self.unwritten.get_or_insert(reason);
        Ok(())
    }
}

/// What is wrong with the products' folder, and what to do.
fn unwritable(dir: &Path, error: impl std::fmt::Display) -> String {
    format!(
        "{}: {error}; free space there or repair the folder; the data waits in the store",
        dir.display()
    )
}

/// An error without its advice to process the contact again: the centre does that by itself.
fn without_help(error: &skyhaul_level0::Error) -> String {
    match error {
        skyhaul_level0::Error::Files { what, name, source } => {
            format!("cannot {what} {name} ({source})")
        }
        other => other.to_string(),
    }
}
