/**
 * The operating system's part in keeping a process that runs or reads what strangers wrote to its own files: whatever a
 * query or a Parquet file makes DuckDB do, the process can open only what Node and DuckDB need to run, the folders that
 * it is given, has no network, starts no program and reaches no other process.
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
