import { generateKeyPairSync } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";

const P256 = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
const DAY_MS = 86_400_000;

/** A certificate for 127.0.0.1 that has signed itself; `ca` is its text (PEM). */
export type Certificate = { certPath: string; keyPath: string; ca: string };

/** Writes its files into `folder`. */
export async function makeCertificate(folder: string): Promise<Certificate> {
  // The library needs the metadata of decorators to be there before.
  await import("reflect-metadata");
  const x509 = await import("@peculiar/x509");
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: P256.namedCurve });
  const name = "CN=engine-bench";
  const certificate = await x509.X509CertificateGenerator.create({
    subject: name,
    issuer: name,
    notBefore: new Date(Date.now() - DAY_MS),
    notAfter: new Date(Date.now() + DAY_MS),
    publicKey: publicKey.toCryptoKey(P256, true, ["verify"]),
    signingKey: privateKey.toCryptoKey(P256, false, ["sign"]),
    signingAlgorithm: P256,
    extensions: [
      new x509.BasicConstraintsExtension(true, undefined, true),
      new x509.SubjectAlternativeNameExtension([{ type: "ip", value: "127.0.0.1" }]),
    ],
  });
  const [certPath, keyPath] = [join(folder, "server.crt"), join(folder, "server.key")];
  const ca = certificate.toString("pem");
  await writeFile(certPath, ca);
  await writeFile(keyPath, privateKey.export({ type: "pkcs8", format: "pem" }), { mode: 0o600 });
  return { certPath, keyPath, ca };
}
