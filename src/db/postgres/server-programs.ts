import { execFileSync } from "node:child_process";
import { accessSync, constants, globSync } from "node:fs";
import { delimiter, join } from "node:path";

/** PostgreSQL's server programs on this machine. */
export type PostgresPrograms = { folder: string; major: number };

/** The newest ones of Debian's place for them, and of a PATH; undefined where there are none. */
export function findPostgresPrograms(path = ""): PostgresPrograms | undefined {
  const folders = [...path.split(delimiter), ...globSync("/usr/lib/postgresql/*/bin")];
  const complete = folders.filter((folder) =>
    ["initdb", "postgres", "pg_isready"].every((name) => mayRun(folder, name)),
  );
  const known = [...new Set(complete)].map((folder) => ({ folder, major: majorOf(folder) }));
  return known.toSorted((a, b) => a.major - b.major).at(-1);
}

function mayRun(folder: string, name: string): boolean {
  if (folder === "") return false;
  try {
    accessSync(join(folder, name), constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function majorOf(folder: string): number {
  try {
    const text = execFileSync(join(folder, "postgres"), ["--version"], { encoding: "utf8", timeout: 10_000 });
    return Number(/\) (\d+)/.exec(text)?.[1] ?? 0);
  } catch {
    // Something else by that name.
    return 0;
  }
}
