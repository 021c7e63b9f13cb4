import { open, type FileHandle } from "node:fs/promises";

/** What a base image's file system (a tar archive) says about itself: its system, its packages, what it lacks. */

export type Arch = "x64" | "arm64";

/** The names that OCI, Debian and Go have for them. */
export const DEBIAN_ARCH: Readonly<Record<Arch, string>> = { x64: "amd64", arm64: "arm64" };

export type BasePackage = { name: string; version: string; arch: string };

export type Base = {
  /** As `ID` and `VERSION_ID` of os-release: `debian`, `12`. */
  system: { id: string; version: string };
  packages: readonly BasePackage[];
};

const STATUS = "var/lib/dpkg/status";
const RELEASE = "usr/lib/os-release";
/** Files that the program cannot do without, and the packages that bring them. */
const NEEDED: readonly (readonly [path: string, name: string])[] = [
  ["usr/bin/perl", "perl-base"],
  ["etc/ssl/certs/ca-certificates.crt", "ca-certificates"],
];
const NEEDED_PACKAGES = ["libc6", "libstdc++6"];

/** @throws Error where it is no Debian system for that architecture, or lacks something; the message says what to do. */
export async function readBase(path: string, arch: Arch): Promise<Base> {
  const { names, contents } = await scanTar(path, [STATUS, RELEASE]);
  const status = contents.get(STATUS);
  const release = contents.get(RELEASE);
  if (status === undefined || release === undefined) {
    throw new Error(`${path} has no ${status === undefined ? STATUS : RELEASE}: a base is a Debian root file system`);
  }
  const packages = packagesOf(status);
  const libc = packages.find(({ name }) => name === "libc6");
  if (libc !== undefined && libc.arch !== DEBIAN_ARCH[arch]) {
    throw new Error(`${path} is a system for ${libc.arch}, and was given as the base for ${arch}`);
  }
  const missing = [
    ...NEEDED.filter(([needed]) => !names.has(needed)).map(([, name]) => name),
    ...NEEDED_PACKAGES.filter((needed) => !packages.some(({ name }) => name === needed)),
  ];
  if (missing.length > 0) throw new Error(`${path} lacks ${missing.join(", ")}: install it in the base`);
  return { system: { id: fieldOf(release, "ID"), version: fieldOf(release, "VERSION_ID") }, packages };
}

/** Of dpkg's list, those that are installed, by name. */
function packagesOf(status: string): BasePackage[] {
  const found = status.split(/\n\n+/).flatMap((paragraph) => {
    const field = (name: string) => new RegExp(`^${name}: (.+)$`, "m").exec(paragraph)?.[1];
    const [name, version, arch] = [field("Package"), field("Version"), field("Architecture")];
    if (name === undefined || version === undefined || arch === undefined) return [];
    return field("Status")?.endsWith(" installed") === true ? [{ name, version, arch }] : [];
  });
  return found.sort((a, b) => (a.name < b.name ? -1 : 1));
}

function fieldOf(release: string, name: string): string {
  return new RegExp(`^${name}="?([^"\n]*)"?$`, "m").exec(release)?.[1] ?? "unknown";
}

const BLOCK_BYTES = 512;
/** Long names of GNU tar, and extended headers of POSIX. */
const LONG_NAME = "L";
const EXTENDED = "x";

/** The names in an archive, and the texts of the wanted files. Skips over everything else without reading it. */
async function scanTar(path: string, wanted: readonly string[]) {
  const names = new Set<string>();
  const contents = new Map<string, string>();
  const file = await open(path);
  try {
    const { size } = await file.stat();
    let longName: string | undefined;
    for (let at = 0; ;) {
      if (at + BLOCK_BYTES > size) throw new Error(`${path} is cut or damaged`);
      const header = await read(file, at, BLOCK_BYTES);
      if (header.every((byte) => byte === 0)) break;
      const isPosix = header[262] === 0;
      if (header.toString("latin1", 257, 262) !== "ustar")
        throw new Error(`${path} is no tar archive without compression`);
      const sizeBytes = Number.parseInt(text(header, 124, 12), 8);
      const body = at + BLOCK_BYTES;
      if (!Number.isSafeInteger(sizeBytes) || body + sizeBytes > size) throw new Error(`${path} is cut or damaged`);
      at = body + Math.ceil(sizeBytes / BLOCK_BYTES) * BLOCK_BYTES;
      const type = header.toString("latin1", 156, 157);
      if (type === LONG_NAME || type === EXTENDED) {
        const content = (await read(file, body, sizeBytes)).toString("utf8");
        longName = type === LONG_NAME ? content.replace(/\0+$/, "") : /^\d+ path=(.*)$/m.exec(content)?.[1];
        continue;
      }
      const prefix = isPosix ? text(header, 345, 155) : "";
      const name = (longName ?? [prefix, text(header, 0, 100)].filter(Boolean).join("/")).replace(/^\.?\//, "");
      longName = undefined;
      names.add(name);
      if (wanted.includes(name)) contents.set(name, (await read(file, body, sizeBytes)).toString("utf8"));
    }
  } finally {
    await file.close();
  }
  return { names, contents };
}

async function read(file: FileHandle, at: number, sizeBytes: number): Promise<Buffer> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(sizeBytes), 0, sizeBytes, at);
  if (bytesRead < sizeBytes) throw new Error("the archive ends in the middle of an entry");
  return buffer;
}

function text(block: Buffer, at: number, length: number): string {
  return block
    .toString("utf8", at, at + length)
    .replace(/\0[^]*$/, "")
    .trim();
}
