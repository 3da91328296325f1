//! The event handlers: each collects a view, calls a decision and applies its plan through the world.
