import { createHash } from "node:crypto";
import { readdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createWriteStream } from "node:fs";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { tarOf, type Entry } from "../tar.ts";
import type { Arch } from "./base.ts";
import { DEBIAN_ARCH } from "./base.ts";
import type { ImageConfig } from "./dockerfile.ts";
import type { Blob, Layer } from "./layers.ts";

/** Manifests of the OCI image format (image-spec 1.1), and the archive of a layout with images of several architectures. */

const MEDIA = {
  index: "application/vnd.oci.image.index.v1+json",
  manifest: "application/vnd.oci.image.manifest.v1+json",
  config: "application/vnd.oci.image.config.v1+json",
  layer: "application/vnd.oci.image.layer.v1.tar+gzip",
} as const;

export type Manifest = Blob & { arch: Arch };

type Described = { config: ImageConfig; layers: readonly (Layer & { madeBy: string })[]; created: string };

/** Writes configuration and manifest of an image among the blobs. */
export async function writeManifest(
  arch: Arch,
  { config, layers, created }: Described,
  blobs: string,
): Promise<Manifest> {
  const described = await writeJson(blobs, {
    created,
    architecture: DEBIAN_ARCH[arch],
    os: "linux",
    config,
    rootfs: { type: "layers", diff_ids: layers.map(({ diffId }) => diffId) },
    history: layers.map(({ madeBy }) => ({ created, created_by: madeBy })),
  });
  const manifest = await writeJson(blobs, {
    schemaVersion: 2,
    mediaType: MEDIA.manifest,
    config: { mediaType: MEDIA.config, ...described },
    layers: layers.map(({ digest, size }) => ({ mediaType: MEDIA.layer, digest, size })),
  });
  return { ...manifest, arch };
}

/**
 * Writes the layout's archive: one image with a manifest for each architecture, under the name `tag`. `blobs` is its folder of
 * blobs, complete but for the index. Returns the digest that a registry gives to the image.
 */
export async function writeLayout(
  manifests: readonly Manifest[],
  { tag, blobs, archive, timeSecs }: { tag: string; blobs: string; archive: string; timeSecs: number },
): Promise<string> {
  const index = await writeJson(blobs, {
    schemaVersion: 2,
    mediaType: MEDIA.index,
    manifests: manifests.map(({ arch, digest, size }) => ({
      mediaType: MEDIA.manifest,
      digest,
      size,
      platform: { architecture: DEBIAN_ARCH[arch], os: "linux" },
    })),
  });
  const named = { mediaType: MEDIA.index, ...index, annotations: { "org.opencontainers.image.ref.name": tag } };
  const files = [
    { path: "index.json", text: JSON.stringify({ schemaVersion: 2, mediaType: MEDIA.index, manifests: [named] }) },
    { path: "oci-layout", text: JSON.stringify({ imageLayoutVersion: "1.0.0" }) },
  ];
  await pipeline(Readable.from(tarOf(entriesOf(files, blobs), timeSecs)), createWriteStream(archive));
  return index.digest;
}

async function* entriesOf(files: readonly { path: string; text: string }[], blobs: string): AsyncGenerator<Entry> {
  for (const path of ["blobs", "blobs/sha256"]) yield { path, type: "folder", mode: 0o755, uid: 0 };
  for (const name of (await readdir(blobs)).sort()) {
    const source = join(blobs, name);
    yield { path: `blobs/sha256/${name}`, type: "file", mode: 0o644, sizeBytes: (await stat(source)).size, source };
  }
  for (const { path, text } of files) {
    const source = Buffer.from(text);
    yield { path, type: "file", mode: 0o644, sizeBytes: source.length, source };
  }
}

async function writeJson(blobs: string, value: object): Promise<Blob> {
  const bytes = Buffer.from(JSON.stringify(value));
  const digest = createHash("sha256").update(bytes).digest("hex");
  await writeFile(join(blobs, digest), bytes);
  return { digest: `sha256:${digest}`, size: bytes.length };
}
