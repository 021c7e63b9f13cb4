import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, expect, test } from "vitest";
import { ARCHIVE_VERSIONS, commandOf, distribution, distributionOf, programCommand } from "./distribution.ts";

const root = mkdtempSync(join(tmpdir(), "engine-distribution-"));
afterAll(() => rmSync(root, { recursive: true }));

function bundleIn(path: string, written?: string): string {
  const folder = join(root, path);
  mkdirSync(folder, { recursive: true });
  if (written !== undefined) writeFileSync(join(folder, "distribution.json"), written);
  return folder;
}

test("sources are a checkout, and start by its launcher", () => {
  const repository = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
  const program = join(repository, "bin", "engine.js");
  expect(distribution()).toEqual({ kind: "checkout", program, folder: repository });
  expect(programCommand()).toEqual([process.execPath, program]);
});

test("a bundle below node_modules is the npm package, any other a checkout", () => {
  const npm = distributionOf(bundleIn("lib/node_modules/@acme/engine/dist"), "/usr/bin/node");
  const folder = join(root, "lib/node_modules/@acme/engine");
  expect(npm).toEqual({ kind: "npm", program: join(folder, "bin/engine.js"), folder });
  expect(commandOf(npm, "/usr/bin/node")).toEqual(["/usr/bin/node", join(folder, "bin/engine.js")]);
  expect(distributionOf(bundleIn("src/my_node_modules/dist"), "/usr/bin/node").kind).toBe("checkout");
});

test("an archive starts by its launcher, also where the version that runs came by an update", () => {
  const folder = join(root, "opt/engine");
  const expected = { kind: "archive", program: join(folder, "bin/engine"), folder } as const;
  const kind = '{"kind":"archive"}';
  expect(distributionOf(bundleIn("opt/engine/lib/engine/dist", kind), "/opt/engine/node")).toEqual(expected);
  const later = bundleIn(`opt/engine/${ARCHIVE_VERSIONS}/0.2.0/lib/engine/dist`, kind);
  expect(distributionOf(later, "/opt/engine/node")).toEqual(expected);
  expect(commandOf(expected, "/opt/engine/node")).toEqual([expected.program]);
});

test("a single file is the program that runs, whatever it is unpacked into", () => {
  const folder = bundleIn("cache/0123abcd", '{"kind":"single-file"}');
  const single = distributionOf(folder, "/usr/local/bin/engine");
  expect(single).toEqual({ kind: "single-file", program: "/usr/local/bin/engine", folder });
  expect(commandOf(single, "/usr/local/bin/engine")).toEqual(["/usr/local/bin/engine"]);
});

test("an image says so, though its package may lie below node_modules", () => {
  const folder = bundleIn("usr/lib/node_modules/engine/dist", '{"kind":"image"}');
  expect(distributionOf(folder, "/usr/bin/node").kind).toBe("image");
});

test.each(["", "{", "null", "[]", '{"kind":"snap"}', '{"kind":1}'])("distribution.json with %j is refused", (text) => {
  expect(() => distributionOf(bundleIn("broken/dist", text), "node")).toThrow(
    /distribution\.json.*install the program/,
  );
});
