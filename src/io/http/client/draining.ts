/** The header of an answer that says: I am about to stop, nothing was done, ask another. Its value does not matter. */
export const DRAINING_HEADER = "X-Engine-Draining";
