import { generateKeyPairSync, randomBytes } from "node:crypto";

/** A pair of keys as `minisign -G -W` makes them. */
export function makeSigningKey(): { publicKey: string; secretKeyText: string } {
  const pair = generateKeyPairSync("ed25519");
  const raw = pair.publicKey.export({ format: "der", type: "spki" }).subarray(-32);
  const seed = pair.privateKey.export({ format: "der", type: "pkcs8" }).subarray(-32);
  const id = randomBytes(8);
  const head = Buffer.concat([Buffer.from("Ed\0\0B2", "latin1"), Buffer.alloc(48)]);
  const secret = Buffer.concat([head, id, seed, raw, Buffer.alloc(32)]);
  return {
    publicKey: Buffer.concat([Buffer.from("Ed"), id, raw]).toString("base64"),
    secretKeyText: `untrusted comment: minisign encrypted secret key\n${secret.toString("base64")}\n`,
  };
}
