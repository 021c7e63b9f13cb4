import { createHash } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Component } from "./components.ts";
import type { Maker } from "./maker.ts";
import { NODE_VERSIONS } from "./node-runtimes.ts";

/** The list of components in CycloneDX 1.6. The image's maker writes those of the images, with the base's packages. */
export const sbomMaker: Maker = {
  name: "sbom",
  async make({ version, out, sbom }) {
    const name = `engine-${version}.cdx.json`;
    await writeFile(join(out, name), await sbom());
    return [{ name, kind: "sbom" }];
  },
};

export type SbomInput = {
  version: string;
  timeSecs: number;
  components: readonly Component[];
};

/** The same text for the same components: the time is the commit's, and the serial number comes from the content. */
export function sbomText({ version, timeSecs, components }: SbomInput): string {
  const body = {
    version: 1,
    metadata: {
      timestamp: new Date(timeSecs * 1_000).toISOString(),
      component: {
        type: "application",
        "bom-ref": `engine@${version}`,
        name: "engine",
        version,
        licenses: [{ license: { id: "Apache-2.0" } }],
      },
    },
    components: [
      ...NODE_VERSIONS.map((node) => ({
        type: "platform",
        "bom-ref": `node@${node}`,
        name: "node",
        version: node,
        purl: `pkg:generic/node@${node}`,
        licenses: [{ license: { name: "Node.js, see LICENSE.node" } }],
      })),
      ...components.map(describe),
    ],
  };
  const digest = createHash("sha256").update(JSON.stringify(body)).digest("hex");
  const text = { bomFormat: "CycloneDX", specVersion: "1.6", serialNumber: `urn:uuid:${uuidOf(digest)}`, ...body };
  return `${JSON.stringify(text, undefined, 2)}\n`;
}

function describe({ name, version, license, integrity, folder, isBundled }: Component) {
  const purl = `pkg:npm/${name.replace("@", "%40")}@${version}`;
  const [algorithm = "", base64 = ""] = integrity.split(/-(.*)/s);
  const isExpression = /[ ()]/.test(license);
  return {
    type: "library",
    // The same version may be there twice, for two that need it.
    "bom-ref": `${purl}#${folder}`,
    name,
    version,
    purl,
    licenses: [isExpression ? { expression: license } : { license: { id: license } }],
    hashes: [{ alg: algorithm.replace("sha", "SHA-"), content: Buffer.from(base64, "base64").toString("hex") }],
    properties: [{ name: "engine:bundled", value: String(isBundled) }],
  };
}

/** A UUID of version 8, whose bits are those of the digest. */
function uuidOf(hex: string): string {
  const variant = ((Number.parseInt(hex.slice(16, 17), 16) & 0x3) | 0x8).toString(16);
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `8${hex.slice(13, 16)}`,
    variant + hex.slice(17, 20),
    hex.slice(20, 32),
  ].join("-");
}
