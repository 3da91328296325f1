//! Load: arrival curves, and how requests turn into CPU use and response times.
