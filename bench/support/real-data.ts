import { execFileSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { columnsOf, type Dataset, type Shape } from "./shapes.ts";

/** Real data of this machine: what people wrote, with the skew that no generator has. */

const REPOSITORY = fileURLToPath(new URL("../..", import.meta.url));
const APT_LISTS = "/var/lib/apt/lists";
const MAX_OUTPUT_BYTES = 512 * 1024 * 1024;

const GIT_SHAPE: Shape = {
  columns: columnsOf({
    at: "timestamp",
    commit: "string",
    author: "string",
    subject: "string",
    body: "string",
    path: "string",
    added: "long",
    deleted: "long",
  }),
  checks: { sumColumn: "added", hashColumn: "path" },
};

/**
 * The history of this repository, a row per commit and changed file, repeated until there are `rows` rows: the history
 * alone is short.
 */
export function gitHistory(rows: number): Dataset {
  const lines = gitRows().map((row) => `${JSON.stringify(row)}\n`);
  if (lines.length === 0) throw new Error("the repository has no history");
  return repeated("git history", GIT_SHAPE, lines, rows);
}

/** Between the records and between the fields of git's output: bytes that no commit message has. */
const RECORD = "\u001e";
const FIELD = "\u001f";

function gitRows(): Record<string, string | number>[] {
  const format = `--format=${["%H", "%aI", "%an", "%s", "%b"].map((field) => `${field}%x1f`).join("")}`;
  const text = execFileSync("git", ["log", "--numstat", format.replace("%H", "%x1e%H")], {
    cwd: REPOSITORY,
    encoding: "utf8",
    maxBuffer: MAX_OUTPUT_BYTES,
  });
  return text
    .split(RECORD)
    .slice(1)
    .flatMap((record) => {
      const [commit = "", at = "", author = "", subject = "", body = "", files = ""] = record.split(FIELD);
      const changed = files.split("\n").filter((line) => line !== "");
      return changed.map((line) => {
        const [added = "0", deleted = "0", path = ""] = line.split("\t");
        // Binary files have dashes.
        return { at, commit, author, subject, body, path, added: Number(added) || 0, deleted: Number(deleted) || 0 };
      });
    });
}

const PACKAGES_SHAPE: Shape = {
  columns: columnsOf({
    Package: "string",
    Version: "string",
    Architecture: "string",
    Section: "string",
    Maintainer: "string",
    Depends: "string",
    Description: "string",
    Filename: "string",
    SHA256: "string",
    Size: "long",
    InstalledSize: "long",
    at: "timestamp",
  }),
  checks: { sumColumn: "Size", hashColumn: "SHA256" },
};

/** Debian's package index as the package manager left it here, repeated or cut to `rows` rows; undefined without. */
export function debianPackages(rows: number): Dataset | undefined {
  const file = packageIndex();
  if (file === undefined) return undefined;
  const text = execFileSync("/usr/lib/apt/apt-helper", ["cat-file", file], {
    encoding: "utf8",
    maxBuffer: MAX_OUTPUT_BYTES,
  });
  const stanzas = text.split("\n\n").filter((stanza) => stanza !== "");
  const lines = stanzas.slice(0, rows).map((stanza) => `${JSON.stringify(packageRow(stanza))}\n`);
  return lines.length === 0 ? undefined : repeated("Debian packages", PACKAGES_SHAPE, lines, rows);
}

function packageIndex(): string | undefined {
  if (!existsSync("/usr/lib/apt/apt-helper") || !existsSync(APT_LISTS)) return undefined;
  const files = readdirSync(APT_LISTS).filter((name) => /_main_binary-\w+_Packages(\.\w+)?$/.test(name));
  // The release's own index is much larger than those of its updates.
  const file = files.find((name) => !/security|updates|backports/.test(name));
  return file === undefined ? undefined : join(APT_LISTS, file);
}

/** The declared fields of a stanza; continued lines keep their line feeds. The index has no times: all rows share one. */
function packageRow(stanza: string): Record<string, string | number> {
  const fields = new Map<string, string>();
  for (const field of stanza.split(/\n(?! )/)) {
    const colon = field.indexOf(":");
    fields.set(field.slice(0, colon), field.slice(colon + 1).trim());
  }
  const row: Record<string, string | number> = {};
  for (const { name, type } of PACKAGES_SHAPE.columns) {
    const value = fields.get(name === "InstalledSize" ? "Installed-Size" : name) ?? "";
    row[name] = type.kind === "long" ? Number(value) || 0 : value;
  }
  return { ...row, at: "2026-01-01T00:00:00Z" };
}

function repeated(name: string, shape: Shape, lines: readonly string[], rows: number): Dataset {
  const some = lines.slice(0, rows);
  const whole = Buffer.from(some.join(""));
  const times = Math.floor(rows / some.length);
  const rest = Buffer.from(some.slice(0, rows % some.length).join(""));
  const ndjson = Buffer.concat([...Array.from({ length: times }, () => whole), rest]);
  return { name, ndjson, rows, ...shape };
}
