import { expect, test } from "vitest";
import { ManifestError, manifestText, readManifest } from "./manifest.ts";
import { exampleRelease } from "./release.test-kit.ts";

const good = { format: 1, product: "engine", ...exampleRelease() };

function read(value: unknown) {
  return readManifest(Buffer.from(typeof value === "string" ? value : JSON.stringify(value)));
}

test("what is written is read", () => {
  expect(read(manifestText(exampleRelease()))).toEqual(good);
  expect(() => manifestText({ ...exampleRelease(), version: "latest" })).toThrow(ManifestError);
});

const [artefact] = good.artefacts;

test.each([
  ["", "it is not JSON"],
  ["null", "it:"],
  ["[]", "it:"],
  ['{"__proto__":{}}', "format:"],
  [{ ...good, product: "other" }, "it is of another product"],
  [{ ...good, format: 2 }, "it has a format of later versions"],
  [{ ...good, extra: 1 }, "it:"],
  [{ ...good, version: "1.2" }, "version:"],
  [{ ...good, version: "../1.2.3" }, "version:"],
  [{ ...good, version: "1.2.3+build" }, "version:"],
  [{ ...good, released_at: "yesterday" }, "released_at:"],
  [{ ...good, expires_at: good.released_at }, "it expires too early"],
  [{ ...good, catalog: { ...good.catalog, sqlite: { reads_from: 5, writes: 4 } } }, "catalog.sqlite: reads_from"],
  [{ ...good, artefacts: [] }, "artefacts:"],
  [{ ...good, artefacts: [artefact, artefact] }, "a name comes twice"],
  [{ ...good, artefacts: [{ ...artefact, sha256: "ABC" }] }, "artefacts.0.sha256:"],
  [{ ...good, artefacts: [{ ...artefact, size_bytes: -1 }] }, "artefacts.0.size_bytes:"],
  [{ ...good, artefacts: [{ ...artefact, size_bytes: 2 ** 40 }] }, "artefacts.0.size_bytes:"],
  [{ ...good, artefacts: [{ ...artefact, kind: "exe" }] }, "artefacts.0.kind:"],
])("refused: %j", (value, reason) => {
  expect(() => read(value)).toThrow(ManifestError);
  expect(() => read(value)).toThrow(reason);
});

test.each([
  "",
  ".",
  "..",
  "../engine",
  "a/b",
  "a\\b",
  "/etc/passwd",
  "a b",
  "a?b",
  "a#b",
  "a%2fb",
  "a\n",
  "é",
  ".engine",
  "-x",
])("no artefact is named %j", (name) => {
  expect(() => read({ ...good, artefacts: [{ ...artefact, name }] })).toThrow("artefacts.0.name");
});

test("text that is not UTF-8 is refused", () => {
  expect(() => readManifest(Buffer.from([0x22, 0xff, 0x22]))).toThrow("it is not JSON");
});
