import { createRequire } from "node:module";

/**
 * The official parser and binder of KQL. It is C# that was compiled to JavaScript: two files that define the globals
 * `Bridge`, `System` and `Kusto`. A process that starts from a V8 snapshot of them (`translator/startup-snapshot.ts`) has
 * the globals already; any other loads the files, which takes 0.25 s, and its first analysis builds the grammar for 1.1 s.
 */
const PACKAGE = "@kusto/language-service-next";
const FILES = ["bridge.min.js", "Kusto.Language.Bridge.min.js"];

const load = createRequire(import.meta.url);

/** The paths of its files, in the order in which they are loaded. Throws when the package is not installed. */
export function libraryFiles(): string[] {
  return FILES.map((file) => load.resolve(`${PACKAGE}/${file}`));
}

/** Sees that the globals are there. */
export function loadLibrary(): void {
  if ("Kusto" in globalThis) return;
  for (const file of libraryFiles()) load(file);
}
