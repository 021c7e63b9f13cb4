import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { assertAllowed } from "./licences.ts";
import { closureOf, withoutIntegrity, type LockFile } from "./lock-file.ts";

/**
 * The packages of others that a release consists of: those whose code is in the bundle, and those that are installed
 * beside it, with the binaries of all platforms.
 */
export type Component = {
  name: string;
  version: string;
  /** An SPDX expression. */
  license: string;
  /** As in the lock file. */
  integrity: string;
  /** Its folder in the checkout. */
  folder: string;
  isBundled: boolean;
};

/** Packages that the bundle loads from beside it (`scripts/build.ts`). */
export const INSTALLED = [
  "@duckdb/node-api",
  "@duckdb/node-bindings",
  "@node-rs/argon2",
  "kafkajs",
  "piscina",
  "postgres",
];
/** Left out by npm where there is none for the platform or the Node. */
export const INSTALLED_IF_THERE = ["@uwsjs/linux-x64-22", "@uwsjs/linux-x64-24"];
/** Of a package that holds the same several times over, the two files that are loaded, which go into the npm package. */
export const VENDORED = {
  name: "@kusto/language-service-next",
  files: ["package.json", "bridge.min.js", "Kusto.Language.Bridge.min.js"],
} as const;

/** @throws Error for a licence that is not allowed, and for a package that the lock file does not pin */
export async function componentsOf(repository: string): Promise<Component[]> {
  const lock = await readLock(repository);
  const [unpinned] = withoutIntegrity(lock);
  if (unpinned !== undefined) throw new Error(`package-lock.json has no integrity for ${unpinned}`);
  const bundled = JSON.parse(await readFile(join(repository, "dist/packages.json"), "utf8")) as string[];
  const beside = closureOf(lock, [...INSTALLED, ...INSTALLED_IF_THERE, VENDORED.name]);
  const components = [...new Set([...bundled, ...beside])].toSorted().map((folder): Component => {
    const { version, license, integrity } = lock.packages[folder] ?? {};
    if (version === undefined || integrity === undefined) throw new Error(`package-lock.json does not pin ${folder}`);
    const name = nameOf(folder);
    return { name, version, license: license ?? "none", integrity, folder, isBundled: bundled.includes(folder) };
  });
  assertAllowed(components);
  return components;
}

export async function readLock(repository: string): Promise<LockFile> {
  return JSON.parse(await readFile(join(repository, "package-lock.json"), "utf8")) as LockFile;
}

function nameOf(folder: string): string {
  return folder.slice(folder.lastIndexOf("node_modules/") + "node_modules/".length);
}

const LICENSE_FILE = /^(licen[cs]e|copying|notice)/i;

/**
 * `THIRD-PARTY-LICENSES.txt`: the licences of the code that is in the artefacts' own files. Packages that are installed
 * beside it bring theirs, and are only named.
 */
export async function licenceTexts(repository: string, components: readonly Component[]): Promise<string> {
  const parts = components.map(async (component) => {
    const { name, version, license, folder } = component;
    const heading = `${name} ${version} (${license})`;
    if (!component.isBundled && name !== VENDORED.name) return `${heading}\n\nIn its own folder.\n`;
    const files = (await readdir(join(repository, folder))).filter((file) => LICENSE_FILE.test(file)).toSorted();
    const texts = await Promise.all(files.map((file) => readFile(join(repository, folder, file), "utf8")));
    const text = texts.map((one) => one.replaceAll("\r\n", "\n").trim()).join("\n\n");
    return `${heading}\n\n${text || "The package has no text of its licence."}\n`;
  });
  const rule = `\n${"-".repeat(80)}\n\n`;
  return `This program contains or uses these packages.\n${rule}${(await Promise.all(parts)).join(rule)}`;
}
