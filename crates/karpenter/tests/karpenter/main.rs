//! Karpenter's decisions case by case, and whole passes compared with the real program's.

#![allow(clippy::unwrap_used)] // a test that cannot set itself up has failed wherever that happens

mod agreement;
mod by_hand;
mod instance_types;
mod packing;
mod pass_times;
mod releases;
mod selection;
