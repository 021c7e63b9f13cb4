/**
 * The operating system's part in keeping a query to its own files: whatever a statement makes DuckDB do, its process
 * can open only what Node and DuckDB need to run, its `in` to read and its `out` to write, has no network, starts no
 * program and reaches no other process.
 *
 * It counts as on after a process under it has tried (`probe-child.ts`), and each query process tries again before it
 * takes queries (`fence.ts`).
 */
export type Confinement = {
  readonly isOn: boolean;
  /** For the log and `engine status`; names no path. */
  readonly name: string;
  /** The command that runs a command with no rights but to these folders. */
  wrap(command: readonly string[], folders: ProcessFolders): string[];
};

export type ProcessFolders = {
  readable: readonly string[];
  writable: readonly string[];
};

/** A way to confine, before it is tried. */
export type Driver = Omit<Confinement, "isOn">;

export function noConfinement(reason: string): Confinement {
  return { isOn: false, name: `none (${reason})`, wrap: (command) => [...command] };
}
