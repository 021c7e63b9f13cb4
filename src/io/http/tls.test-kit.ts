/** For tests with TLS: certificates that are made when they are wanted. */
import { createPrivateKey, generateKeyPairSync, type KeyObject } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
// The library needs the metadata of decorators to be there before.
import "reflect-metadata";
import {
  BasicConstraintsExtension,
  SubjectAlternativeNameExtension,
  X509Certificate,
  X509CertificateGenerator,
} from "@peculiar/x509";
import { afterAll } from "vitest";
import { systemClock } from "../../core/clock.ts";
import type { TlsFiles } from "./tls.ts";

const folders: string[] = [];

afterAll(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** A folder for certificates, gone when the tests of the file are over. */
export function certificateFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "engine-tls-"));
  folders.push(folder);
  return folder;
}

const P256 = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
const DAY_MS = 86_400_000;

type CertificateOptions = { names?: readonly `${"DNS" | "IP"}:${string}`[]; authority?: TlsFiles };

/**
 * A certificate for `names`, `localhost` and 127.0.0.1 unless given, that has signed itself; or that `authority` has.
 * `name` is its subject and names its files.
 */
export async function makeCertificate(
  folder: string,
  name: string,
  { names = ["DNS:localhost", "IP:127.0.0.1"], authority }: CertificateOptions = {},
): Promise<TlsFiles> {
  const keys = generateKeyPairSync("ec", { namedCurve: P256.namedCurve });
  const [subject, nowMs] = [`CN=${name}`, systemClock.nowMs()];
  const certificate = await X509CertificateGenerator.create({
    subject,
    issuer: authority === undefined ? subject : new X509Certificate(readFileSync(authority.certPath)).subject,
    notBefore: new Date(nowMs - DAY_MS),
    notAfter: new Date(nowMs + 2 * DAY_MS),
    publicKey: keys.publicKey.toCryptoKey(P256, true, ["verify"]),
    signingKey: (authority === undefined ? keys.privateKey : keyIn(authority)).toCryptoKey(P256, false, ["sign"]),
    signingAlgorithm: P256,
    extensions: [
      new BasicConstraintsExtension(authority === undefined, undefined, true),
      new SubjectAlternativeNameExtension(names.map(alternativeName)),
    ],
  });
  const files = { certPath: join(folder, `${name}.crt`), keyPath: join(folder, `${name}.key`) };
  writeFileSync(files.certPath, `${certificate.toString("pem")}\n`);
  writeFileSync(files.keyPath, keys.privateKey.export({ type: "pkcs8", format: "pem" }), { mode: 0o600 });
  return files;
}

function keyIn({ keyPath }: TlsFiles): KeyObject {
  return createPrivateKey(readFileSync(keyPath));
}

/** `DNS:name` or `IP:address`, as openssl has it. */
function alternativeName(text: string): { type: "dns" | "ip"; value: string } {
  const colon = text.indexOf(":");
  return { type: text.startsWith("IP:") ? "ip" : "dns", value: text.slice(colon + 1) };
}

/** Has the clients of this process take a certificate that nobody else has signed. */
export function trustCertificate(cert: string): void {
  setDefaultCACertificates([...getCACertificates("default"), cert]);
}
