import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chmod, copyFile, mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { constants, zstdCompressSync } from "node:zlib";
import { build } from "esbuild";
import { inject } from "postject";
import { ARCHIVE_ASSET, CONTENTS_ASSET, fuse, type Contents } from "../../../src/single-file/contents.ts";
import type { ProgramFile } from "./program-files.ts";

export type Packing = {
  files: readonly ProgramFile[];
  /** The untouched executable of the target. */
  node: string;
  /** Of zstd. */
  level: number;
  /** Where the single file goes; its folder exists. */
  out: string;
};

/**
 * Makes a single file. What is made depends on nothing but the bytes that go in: not on folders, times or the umask.
 * Code cache and snapshot are left out: they would be those of the machine that builds, not of the target.
 */
export async function packSingleFile({ files, node, level, out }: Packing): Promise<void> {
  const work = await mkdtemp(`${out}.`);
  try {
    const bytes = Buffer.concat(files.map((file) => file.bytes));
    const archive = zstdCompressSync(bytes, {
      params: { [constants.ZSTD_c_compressionLevel]: level, [constants.ZSTD_c_checksumFlag]: 1 },
      pledgedSrcSize: bytes.byteLength,
    });
    const contents: Contents = {
      id: createHash("sha256").update(archive).digest("hex"),
      sizeBytes: bytes.byteLength,
      files: files.map((file) => ({
        path: file.path,
        sizeBytes: file.bytes.byteLength,
        isExecutable: file.isExecutable,
      })),
    };
    await writeFile(join(work, ARCHIVE_ASSET), archive);
    await writeFile(join(work, CONTENTS_ASSET), JSON.stringify(contents));
    await writeFile(join(work, "main.cjs"), await startCode());
    await copyFile(node, join(work, "engine"));
    await chmod(join(work, "engine"), 0o755);
    await inject(join(work, "engine"), "NODE_SEA_BLOB", await blobOf(work), { sentinelFuse: fuse() });
    await rename(join(work, "engine"), out);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

async function startCode(): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [new URL("../../../src/single-file/main.ts", import.meta.url).pathname],
    bundle: true,
    write: false,
    platform: "node",
    format: "cjs",
    target: "node22.19",
    minifySyntax: true,
    minifyWhitespace: true,
    legalComments: "none",
    logLevel: "warning",
  });
  const [file] = outputFiles;
  if (file === undefined) throw new Error("esbuild wrote nothing");
  return file.text;
}

/** Paths in it are relative, as Node writes that of the start code into the blob. */
async function blobOf(work: string): Promise<Buffer> {
  const config = {
    main: "main.cjs",
    output: "blob",
    disableExperimentalSEAWarning: true,
    useCodeCache: false,
    useSnapshot: false,
    assets: { [CONTENTS_ASSET]: CONTENTS_ASSET, [ARCHIVE_ASSET]: ARCHIVE_ASSET },
  };
  await writeFile(join(work, "config.json"), JSON.stringify(config));
  execFileSync(process.execPath, ["--experimental-sea-config", "config.json"], {
    cwd: work,
    stdio: ["ignore", "ignore", "inherit"],
  });
  return readFile(join(work, "blob"));
}
