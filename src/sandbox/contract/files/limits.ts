/** The largest file that can be put. */
export const MAX_FILE_BYTES = 1024 ** 3;

/** Of one listing: entries, and bytes of their names and paths. */
export const MAX_LIST_ENTRIES = 10_000;
