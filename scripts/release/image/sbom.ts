import { createHash } from "node:crypto";
import { z } from "zod";
import { DEBIAN_ARCH, type Arch, type Base } from "./base.ts";

/** The list of all that is in an image (CycloneDX 1.5): the program's own list, and the packages of its base. */

const programSbom = z.looseObject({
  bomFormat: z.literal("CycloneDX"),
  components: z.array(z.looseObject({ name: z.string() })).min(1),
});

export type ImageSbomOptions = {
  arch: Arch;
  base: Base;
  version: string;
  /** The program's own list, as JSON. */
  program: string;
  /** The image's time, in ISO 8601. */
  created: string;
  /** The digest of the image's manifest. */
  manifest: string;
};

/** The same image makes the same text. Throws where the program's list is none. */
export function imageSbom({ arch, base, version, program, created, manifest }: ImageSbomOptions): string {
  const { components } = programSbom.parse(JSON.parse(program));
  const { id, version: systemVersion } = base.system;
  const system = { type: "operating-system", "bom-ref": `os:${id}`, name: id, version: systemVersion };
  const packages = base.packages.map((one) => {
    const purl =
      `pkg:deb/${encodeURIComponent(id)}/${encodeURIComponent(one.name)}@${encodeURIComponent(one.version)}` +
      `?arch=${one.arch}&distro=${encodeURIComponent(`${id}-${systemVersion}`)}`;
    return { type: "library", "bom-ref": purl, name: one.name, version: one.version, purl };
  });
  const body = {
    bomFormat: "CycloneDX",
    specVersion: "1.5",
    version: 1,
    metadata: {
      timestamp: created,
      component: {
        type: "container",
        "bom-ref": manifest,
        name: "engine",
        version,
        hashes: [{ alg: "SHA-256", content: manifest.replace("sha256:", "") }],
        properties: [{ name: "engine:architecture", value: DEBIAN_ARCH[arch] }],
      },
    },
    components: [...components, system, ...packages],
  };
  const { bomFormat, ...rest } = body;
  return `${JSON.stringify({ bomFormat, serialNumber: serialNumberOf(JSON.stringify(body)), ...rest }, null, 2)}\n`;
}

/** A UUID (version 8) of the content, as a random one would differ in every build. */
function serialNumberOf(content: string): string {
  const hex = createHash("sha256").update(content).digest("hex");
  return `urn:uuid:${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
