import { posix } from "node:path";

/** npm's lock file, of which a shrinkwrap is another name (lockfileVersion 3). */
export type LockFile = { packages: Readonly<Record<string, LockedPackage>> };

export type LockedPackage = {
  version: string;
  integrity?: string;
  resolved?: string;
  license?: string;
  dev?: boolean;
  devOptional?: boolean;
  optional?: boolean;
  peer?: boolean;
  os?: readonly string[];
  cpu?: readonly string[];
  libc?: readonly string[];
  dependencies?: Readonly<Record<string, string>>;
  optionalDependencies?: Readonly<Record<string, string>>;
  engines?: Readonly<Record<string, string>>;
};

/** Packages of the program itself, by their folders, whose bytes the lock file does not pin. */
export function withoutIntegrity({ packages }: LockFile): string[] {
  return Object.entries(packages).flatMap(([folder, entry]) => {
    const isChecked = folder === "" || entry.dev === true || entry.integrity !== undefined;
    return isChecked ? [] : [folder];
  });
}

/**
 * The folders of these packages and of all that they need, optional ones too.
 * @throws Error for one that the lock file does not have
 */
export function closureOf(lock: LockFile, names: readonly string[]): string[] {
  const folders = new Set(names.map((name) => folderOf(lock, name, "")));
  // The set grows while it is walked.
  for (const folder of folders) {
    const { dependencies, optionalDependencies } = lock.packages[folder] ?? {};
    for (const name of Object.keys({ ...dependencies, ...optionalDependencies })) {
      folders.add(folderOf(lock, name, folder));
    }
  }
  return [...folders].toSorted();
}

/** Where Node finds the package that the one in `from` asks for. */
function folderOf({ packages }: LockFile, name: string, from: string): string {
  for (let above = from; ; above = posix.dirname(above)) {
    const base = above === "." ? "" : above;
    const folder = posix.join(base, "node_modules", name);
    if (packages[folder] !== undefined) return folder;
    if (base === "") throw new Error(`package-lock.json has no ${name}, which ${from || "the program"} needs`);
  }
}
