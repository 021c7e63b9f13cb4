import "../../core/warnings.ts";

// Not a static import: Node loads built-in modules of static imports, and says that this one is experimental, before
// any module of the program has run, so before that warning could be kept from the user.
export const { DatabaseSync } = process.getBuiltinModule("node:sqlite");
