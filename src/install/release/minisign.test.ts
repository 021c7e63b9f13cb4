import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { lacks } from "../../core/gates.test-kit.ts";
import { RELEASE_KEYS } from "./keys.ts";
import { sign, SignatureError, verify } from "./minisign.ts";
import { makeSigningKey } from "./signing-key.test-kit.ts";

const message = Buffer.from('{"format":1}\n');
const [ours, other] = [makeSigningKey(), makeSigningKey()];
const signed = sign(message, ours.secretKeyText, "engine 0.2.0");

test("a signature is good with its key, wherever that stands in the list", () => {
  expect(verify(message, signed, [ours.publicKey])).toEqual({ trustedComment: "engine 0.2.0" });
  expect(verify(message, signed, [other.publicKey, ours.publicKey]).trustedComment).toBe("engine 0.2.0");
  expect(verify(message, signed.replaceAll("\n", "\r\n"), [ours.publicKey]).trustedComment).toBe("engine 0.2.0");
});

test("the keys of this program are keys", () => {
  expect(RELEASE_KEYS).toHaveLength(2);
  expect(() => verify(message, signed, RELEASE_KEYS)).toThrow("is by a key that this program does not trust");
});

/** A line of the signature with another byte. */
function changed(line: number, at: number): string {
  const lines = signed.split("\n");
  const bytes = Buffer.from(lines[line] ?? "", "base64");
  bytes[at] = (bytes[at] ?? 0) ^ 1;
  return lines.with(line, bytes.toString("base64")).join("\n");
}

const unhashed = signed
  .split("\n")
  .with(1, Buffer.from(changed(1, 1).split("\n")[1] ?? "", "base64").toString("base64"));
/** The signature of one message under the trusted comment of another. */
const mixed = [
  ...signed.split("\n").slice(0, 2),
  ...sign(Buffer.from("x"), ours.secretKeyText, "y").split("\n").slice(2),
];

test.each([
  ["nothing", "", "is not one of minisign"],
  ["another file", "hello\nworld\n", "is not one of minisign"],
  ["a line too many", `${signed}x\n`, "is not one of minisign"],
  ["a line without its end", signed.slice(0, -6), "is not one of minisign"],
  ["base64 with what is none", signed.replace("\nRU", "\n RU"), "is not one of minisign"],
  ["a shorter signature", signed.split("\n").with(1, "RUQ=").join("\n"), "is not one of minisign"],
  ["another key", sign(message, other.secretKeyText, "engine 0.2.0"), "is by a key that this program does not trust"],
  [
    "the id of our key on another's signature",
    withId(sign(message, other.secretKeyText, "x")),
    "does not fit the file",
  ],
  ["a bit of the signature", changed(1, 20), "does not fit the file"],
  ["a bit of the second signature", changed(3, 0), "does not fit the file"],
  ["another trusted comment", signed.replace("engine 0.2.0", "engine 9.2.0"), "does not fit the file"],
  ["parts of two signatures", mixed.join("\n"), "does not fit the file"],
  ["no hash", unhashed.join("\n"), "is not over a hash of the file"],
])("refused: %s", (_, text, reason) => {
  expect(() => verify(message, text, [ours.publicKey])).toThrow(new SignatureError(reason));
});

function withId(text: string): string {
  const lines = text.split("\n");
  const bytes = Buffer.from(lines[1] ?? "", "base64");
  Buffer.from(ours.publicKey, "base64").copy(bytes, 2, 2, 10);
  return lines.with(1, bytes.toString("base64")).join("\n");
}

test("refused: another message, also one that differs in its end alone", () => {
  const bytes = Buffer.concat([message, Buffer.from(" ")]);
  expect(() => verify(bytes, signed, [ours.publicKey])).toThrow("does not fit the file");
});

test("keys that are none, or have a password, are refused in a sentence", () => {
  expect(() => verify(message, signed, ["RWQ="])).toThrow("RWQ= is not a public key of minisign");
  expect(() => sign(message, "secret", "x")).toThrow("the secret key is not in a file of minisign");
  const bytes = Buffer.from(ours.secretKeyText.split("\n")[1] ?? "", "base64");
  bytes.write("Sc", 2);
  const locked = `untrusted comment: x\n${bytes.toString("base64")}\n`;
  expect(() => sign(message, locked, "x")).toThrow(/has a password: make one without \(minisign -G -W\)/);
  expect(() => sign(message, ours.secretKeyText, "x\ntrusted comment: y")).toThrow("must be one line");
});

describe.skipIf(lacks("minisign"))("minisign itself", () => {
  const folder = mkdtempSync(join(tmpdir(), "engine-minisign-"));
  const file = join(folder, "release.json");
  let publicKey = "";
  beforeAll(() => {
    writeFileSync(file, message);
    execFileSync("minisign", ["-G", "-W", "-p", join(folder, "k.pub"), "-s", join(folder, "k.key")]);
    publicKey = readFileSync(join(folder, "k.pub"), "utf8").split("\n")[1] ?? "";
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  test("its signatures are good here", () => {
    execFileSync("minisign", ["-S", "-s", join(folder, "k.key"), "-m", file, "-t", "engine 0.3.0"]);
    const text = readFileSync(`${file}.minisig`, "utf8");
    expect(verify(message, text, [publicKey])).toEqual({ trustedComment: "engine 0.3.0" });
  });

  test("signatures of ours are good there, with keys of either, and a changed file is not", () => {
    const keys = [
      [readFileSync(join(folder, "k.key"), "utf8"), publicKey],
      [ours.secretKeyText, ours.publicKey],
    ] as const;
    for (const [secretKeyText, key] of keys) {
      writeFileSync(file, message);
      writeFileSync(`${file}.minisig`, sign(message, secretKeyText, "engine 0.4.0"));
      const check = () => spawnSync("minisign", ["-V", "-H", "-P", key, "-m", file], { encoding: "utf8" });
      expect(check()).toMatchObject({ status: 0, stdout: expect.stringContaining("Trusted comment: engine 0.4.0") });
      writeFileSync(file, `${message.toString()} `);
      expect(check().status).not.toBe(0);
    }
  });
});
