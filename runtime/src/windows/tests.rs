//! Tests of windows.
