import { createHash } from "node:crypto";
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { configOf } from "../../scripts/release/image/dockerfile.ts";
import { writeImage } from "../../scripts/release/image.ts";
import { TAR_END, headerBlocks, padding, parseHeader } from "../../src/io/tar/tar-format.ts";

/** The image's writer, with a base and a program of a few bytes. Real ones: `npm run soak -- deployment`. */

let folder = "";
beforeAll(() => void (folder = mkdtempSync(join(tmpdir(), "engine-image-"))));
afterAll(() => rmSync(folder, { recursive: true }));

const status = (arch: string, packages: readonly string[]) =>
  packages
    .map((name) => `Package: ${name}\nStatus: install ok installed\nArchitecture: ${arch}\nVersion: 1:2.36-9+deb12u4\n`)
    .join("\n");
const baseFiles = (arch: string) => ({
  "usr/bin/perl": "perl",
  "etc/ssl/certs/ca-certificates.crt": "authorities",
  "usr/lib/os-release": 'NAME="Debian"\nVERSION_ID="12"\nID=debian\n',
  "var/lib/dpkg/status": status(arch, ["libc6", "libstdc++6", "perl-base"]),
});

function tarWith(files: Readonly<Record<string, string>>): string {
  const path = join(mkdtempSync(join(folder, "base-")), "base.tar");
  const about = { type: "file", mode: 0o644, uid: 0, gid: 0, modifiedSecs: 1, target: "" } as const;
  const blocks = Object.entries(files).flatMap(([name, text]) => {
    const content = Buffer.from(text);
    const header = headerBlocks({ ...about, path: `./${name}`, sizeBytes: content.length });
    return [header, content, padding(content.length)];
  });
  writeFileSync(path, Buffer.concat([...blocks, TAR_END]));
  return path;
}

function program(): string {
  const made = mkdtempSync(join(folder, "program-"));
  for (const path of [
    "bin/engine",
    "lib/engine/bin/engine.js",
    "lib/engine/dist/engine.js",
    "node",
    `lib/${"n".repeat(120)}/x`,
  ]) {
    mkdirSync(dirname(join(made, path)), { recursive: true });
    writeFileSync(join(made, path), path);
  }
  writeFileSync(join(made, "lib/engine/dist/distribution.json"), '{"kind":"archive"}');
  chmodSync(join(made, "node"), 0o755);
  symlinkSync("../bin/engine", join(made, "lib/link"));
  return made;
}

const SBOM = JSON.stringify({
  bomFormat: "CycloneDX",
  components: [{ type: "library", name: "zod", version: "4.6.7" }],
});

async function image(options: Partial<Parameters<typeof writeImage>[0]> = {}) {
  const out = mkdtempSync(join(folder, "out-"));
  const inputs = [
    { arch: "x64", base: tarWith(baseFiles("amd64")), program: program() },
    { arch: "arm64", base: tarWith(baseFiles("arm64")), program: program() },
  ] as const;
  const made = await writeImage({ version: "1.2.3", inputs, sbom: SBOM, timeSecs: 1_700_000_000, out, ...options });
  return { out, ...made, bytes: made.files.map(({ name }) => readFileSync(join(out, name))) };
}

/** The regular files and links of a tar archive; long names are in the extended header before. */
function untar(tar: Buffer) {
  const found = new Map<string, { mode: number; uid: number; type: string; modifiedSecs: number; content: Buffer }>();
  let longName: string | undefined;
  for (let at = 0; at < tar.length;) {
    const header = parseHeader(tar.subarray(at, at + 512));
    if (header === undefined) break;
    const content = tar.subarray(at + 512, at + 512 + header.sizeBytes);
    at += 512 + Math.ceil(header.sizeBytes / 512) * 512;
    if (header.type === "extended") longName = / path=(.*)\n/.exec(content.toString())?.[1];
    else {
      found.set((longName ?? header.path).replace(/\/$/, ""), { ...header, content });
      longName = undefined;
    }
  }
  return found;
}

const descriptor = z.looseObject({ digest: z.string(), size: z.number() });
const index = z.looseObject({ manifests: z.array(descriptor) });
const manifest = z.looseObject({ config: descriptor, layers: z.array(descriptor) });
const config = z.looseObject({
  architecture: z.string(),
  config: z.looseObject({ User: z.string(), Entrypoint: z.array(z.string()) }),
  rootfs: z.looseObject({ diff_ids: z.array(z.string()) }),
});
const sha256 = (bytes: Buffer) => `sha256:${createHash("sha256").update(bytes).digest("hex")}`;

describe("the image", () => {
  test("is a layout whose every blob is what its descriptor says, for both architectures", async () => {
    const { out, digest } = await image();
    const layout = untar(readFileSync(join(out, "engine-1.2.3-image.oci.tar")));
    const blob = (one: z.infer<typeof descriptor>) => {
      const content = layout.get(`blobs/sha256/${one.digest.slice("sha256:".length)}`)?.content ?? Buffer.alloc(0);
      expect([sha256(content), content.length]).toEqual([one.digest, one.size]);
      return content;
    };
    const json = (bytes: Buffer | undefined): unknown => JSON.parse(bytes?.toString() ?? "");
    const [top] = index.parse(json(layout.get("index.json")?.content)).manifests;
    expect(top?.digest).toBe(digest);
    const { manifests } = index.parse(json(blob(top ?? { digest: "", size: 0 })));
    expect(manifests.map(({ platform }) => platform)).toEqual([
      { architecture: "amd64", os: "linux" },
      { architecture: "arm64", os: "linux" },
    ]);
    for (const one of manifests) {
      const { config: about, layers } = manifest.parse(json(blob(one)));
      const { config: run, rootfs } = config.parse(json(blob(about)));
      const tars = layers.map((layer) => gunzipSync(blob(layer)));
      expect(tars.map(sha256)).toEqual(rootfs.diff_ids);
      const files = new Map(tars.slice(1).flatMap((tar) => Array.from(untar(tar))));
      expect(files.get(run.Entrypoint[0]?.slice(1) ?? "")?.mode).toBe(0o755);
      expect(files.get(run.Entrypoint[1]?.slice(1) ?? "")?.mode).toBe(0o644);
      expect(files.get("opt/engine/lib/engine/dist/distribution.json")?.content.toString()).toBe('{"kind":"image"}\n');
      expect(files.get("var/lib/engine")).toMatchObject({ uid: 10_001, mode: 0o700, type: "folder" });
      expect(files.get("opt/engine/lib/link")?.type).toBe("symlink");
      expect(files.has(`opt/engine/lib/${"n".repeat(120)}/x`)).toBe(true);
      const owners = [...files].filter(([path]) => path !== "var/lib/engine").map(([, { uid }]) => uid);
      expect(new Set(owners)).toEqual(new Set([0]));
      expect(run.User).toBe("10001:10001");
    }
  });

  test("is the same, byte for byte, from other folders, at other times and with other modes", async () => {
    const first = await image();
    const again = program();
    const late = join(again, "node");
    utimesSync(late, 1, 1);
    chmodSync(late, 0o700);
    chmodSync(join(again, "lib"), 0o700);
    chmodSync(join(again, "bin/engine"), 0o600);
    const base = tarWith(baseFiles("amd64"));
    const arm = tarWith(baseFiles("arm64"));
    cpSync(base, `${base}.copy`);
    const second = await image({
      inputs: [
        { arch: "x64", base: `${base}.copy`, program: again },
        { arch: "arm64", base: arm, program: again },
      ],
    });
    expect(second.digest).toBe(first.digest);
    expect(second.bytes.map(sha256)).toEqual(first.bytes.map(sha256));
    expect((await image({ timeSecs: 1 })).digest).not.toBe(first.digest);
  });

  test("comes with a list of all that is in it, the packages of the base among them", async () => {
    const { out } = await image();
    const list = z
      .looseObject({
        serialNumber: z.string(),
        components: z.array(z.looseObject({ purl: z.string().optional(), name: z.string() })),
      })
      .parse(JSON.parse(readFileSync(join(out, "engine-1.2.3-image-arm64.cdx.json"), "utf8")));
    expect(list.components.map(({ name }) => name)).toEqual(["zod", "debian", "libc6", "libstdc++6", "perl-base"]);
    expect(list.components.at(3)?.purl).toBe(
      "pkg:deb/debian/libstdc%2B%2B6@1%3A2.36-9%2Bdeb12u4?arch=arm64&distro=debian-12",
    );
    expect(list.serialNumber).toMatch(/^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/);
  });
});

describe("what cannot be an image is refused, with nothing left behind", () => {
  const without = (name: string) =>
    Object.fromEntries(Object.entries(baseFiles("amd64")).filter(([path]) => path !== name));
  const escaping = () => {
    const made = program();
    symlinkSync("../../../etc/passwd", join(made, "lib/out"));
    return made;
  };
  const cut = () => {
    const path = tarWith(baseFiles("amd64"));
    writeFileSync(path, readFileSync(path).subarray(0, 1_300));
    return path;
  };
  const text = () => {
    const path = join(mkdtempSync(join(folder, "text-")), "base.tar");
    writeFileSync(path, "no archive\n".repeat(100));
    return path;
  };
  test.for([
    ["a base of another architecture", () => ({ base: tarWith(baseFiles("arm64")) }), "is a system for arm64"],
    ["a base without perl", () => ({ base: tarWith(without("usr/bin/perl")) }), "lacks perl-base: install it"],
    ["a base that is no Debian", () => ({ base: tarWith(without("var/lib/dpkg/status")) }), "Debian root file system"],
    ["a base that is cut", () => ({ base: cut() }), "cut or damaged"],
    ["a base that is no archive", () => ({ base: text() }), "no tar archive"],
    [
      "a program that is none",
      () => ({ program: mkdtempSync(join(folder, "none-")) }),
      "has no node: it is the folder",
    ],
    ["a link that leads out of the program", () => ({ program: escaping() }), "out of the folder"],
  ] as const)("%s", async ([, change, message]) => {
    const input = { arch: "x64", base: tarWith(baseFiles("amd64")), program: program(), ...change() } as const;
    const out = mkdtempSync(join(folder, "refused-"));
    await expect(image({ inputs: [input], out })).rejects.toThrow(message);
    expect(readdirSync(out)).toEqual([]);
  });
});

test("an instruction that the writer does not know is refused", () => {
  const stage = (line: string) => configOf(`FROM x AS engine\n${line}\n`, "engine", {});
  expect(() => stage("ONBUILD RUN x")).toThrow("the Dockerfile has ONBUILD");
  expect(() => stage("ENTRYPOINT node x")).toThrow("JSON");
  expect(() => stage('ENV A="b c"')).toThrow("NAME=VALUE without quotes");
  expect(() => stage("LABEL a=${B}")).toThrow("${B}, which is not given");
  expect(() => stage("USER 1:1")).toThrow("does not say Entrypoint");
  expect(() => configOf("FROM x AS y\n", "engine", {})).toThrow("no stage engine");
});
