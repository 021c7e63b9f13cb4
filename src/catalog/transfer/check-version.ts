import { EngineError } from "../../core/errors.ts";

/** Throws `conflict` for a catalog that another version of the program has upgraded. */
export function checkVersion(version: number, known: number): void {
  if (version === known) return;
  const what = `the catalog has schema ${version}, this program writes ${known}`;
  throw new EngineError("conflict", `${what}: make the backup with the version of the program that serves it`);
}
