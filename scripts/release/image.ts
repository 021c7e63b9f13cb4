import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { readBase, type Arch } from "./image/base.ts";
import { configOf } from "./image/dockerfile.ts";
import { entriesOf, writeBaseLayer, writeLayer } from "./image/layers.ts";
import { writeLayout, writeManifest, type Manifest } from "./image/layout.ts";
import { imageSbom } from "./image/sbom.ts";
import type { Maker } from "./maker.ts";
import type { Entry } from "./tar.ts";

/**
 * The image of a release, as the archive of an OCI layout with one image for each architecture whose base is given.
 *
 * A base is a tar of a Debian root file system (docs/deploy.md), the program that of the Linux archive. Written by our
 * own code and not by a builder of images: it needs neither root, nor a builder, nor a machine or an emulator of the
 * other architecture, and the same inputs make the same bytes (with the same Node on the same kind of processor, since
 * its zlib decides how they are compressed). The configuration is that of `deploy/image/Dockerfile`.
 */
export const imageMaker: Maker = {
  name: "image",
  async make({ version, timeSecs, out, imageBases, programFolder, sbom }) {
    if (imageBases.size === 0) throw new Error("the image needs a base: give --image-base ARCH=TAR (x64, arm64)");
    const inputs: ImageInput[] = [];
    for (const [arch, base] of imageBases) {
      inputs.push({ arch, base, program: await programFolder({ os: "linux", arch }) });
    }
    const { files, digest } = await writeImage({ version, inputs, sbom: await sbom(), timeSecs, out });
    console.log(`image digest ${digest}`);
    return files;
  },
};

type ImageInput = { arch: Arch; base: string; program: string };

type ImageOptions = {
  version: string;
  inputs: readonly ImageInput[];
  /** The program's list of components, as JSON (CycloneDX). */
  sbom: string;
  /** The time that everything in the image has, in seconds since 1970. */
  timeSecs: number;
  /** A folder that exists; the results replace those of the same names. */
  out: string;
};

type ImageFile = { name: string; kind: "image" | "sbom"; arch?: Arch };

/** Where the archive of a release lies in the image. */
const PLACE = "opt/engine";
const BUNDLE = `${PLACE}/lib/engine/dist`;
const RUNTIME = `${PLACE}/node`;
const USER_ID = 10_001;

/** Writes the image and a list of components for each architecture. Resolves to their names and the image's digest. */
export async function writeImage(options: ImageOptions): Promise<{ files: ImageFile[]; digest: string }> {
  const { version, inputs, timeSecs, out } = options;
  const made = await mkdtemp(join(out, ".image-"));
  const blobs = join(made, "blobs");
  try {
    await mkdir(blobs);
    const files: ImageFile[] = [];
    const manifests: Manifest[] = [];
    for (const input of inputs) {
      const { manifest, sbom } = await writeOne(input, options, blobs);
      manifests.push(manifest);
      const name = `engine-${version}-image-${input.arch}.cdx.json`;
      await writeFile(join(made, name), sbom);
      files.push({ name, kind: "sbom", arch: input.arch });
    }
    const name = `engine-${version}-image.oci.tar`;
    const digest = await writeLayout(manifests, {
      tag: `engine:${version}`,
      blobs,
      archive: join(made, name),
      timeSecs,
    });
    files.push({ name, kind: "image" });
    for (const file of files) await rename(join(made, file.name), join(out, file.name));
    return { files, digest };
  } finally {
    await rm(made, { recursive: true });
  }
}

async function writeOne(
  { arch, base, program }: ImageInput,
  { version, sbom, timeSecs }: ImageOptions,
  blobs: string,
): Promise<{ manifest: Manifest; sbom: string }> {
  const system = await readBase(base, arch);
  const [runtime, files] = splitRuntime(await programEntries(program));
  const created = new Date(timeSecs * 1_000).toISOString();
  const dockerfile = await readFile(new URL("../../deploy/image/Dockerfile", import.meta.url), "utf8");
  const layers = [
    { ...(await writeBaseLayer(base, blobs)), madeBy: `${system.system.id} ${system.system.version}` },
    { ...(await writeLayer(runtime, timeSecs, blobs)), madeBy: "Node.js" },
    { ...(await writeLayer(files, timeSecs, blobs)), madeBy: `engine ${version}` },
  ];
  const config = configOf(dockerfile, "engine", { VERSION: version });
  const manifest = await writeManifest(arch, { config, layers, created }, blobs);
  const list = imageSbom({ arch, base: system, version, program: sbom, created, manifest: manifest.digest });
  return { manifest, sbom: list };
}

/** What the Dockerfile's COPY and RUN make. */
async function programEntries(program: string): Promise<Entry[]> {
  const entries = await entriesOf(program, PLACE);
  for (const needed of [RUNTIME, `${PLACE}/lib/engine/bin/engine.js`, `${BUNDLE}/engine.js`]) {
    if (entries.some(({ path, type }) => path === needed && type === "file")) continue;
    throw new Error(
      `${program} has no ${needed.slice(PLACE.length + 1)}: it is the folder of an unpacked Linux archive`,
    );
  }
  const kind = Buffer.from('{"kind":"image"}\n');
  const path = `${BUNDLE}/distribution.json`;
  return [
    ...entries.filter((entry) => entry.path !== path),
    { path, type: "file", mode: 0o644, sizeBytes: kind.length, source: kind },
    { path: "var/lib/engine", type: "folder", mode: 0o700, uid: USER_ID },
  ];
}

/** Node.js has a layer of its own: it rarely changes, and registries and nodes keep it from release to release. */
function splitRuntime(entries: readonly Entry[]): [runtime: Entry[], others: Entry[]] {
  const runtime = entries.filter(({ path }) => path === PLACE || path === RUNTIME);
  return [runtime, entries.filter(({ path }) => path !== RUNTIME)];
}
