/** For tests with TLS: certificates that are made when they are wanted. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { afterAll } from "vitest";
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

/**
 * A certificate for `names`, `localhost` and 127.0.0.1 unless given, that has signed itself; or that `authority` has.
 * `name` is its subject and names its files.
 */
export function makeCertificate(
  folder: string,
  name: string,
  { names = ["DNS:localhost", "IP:127.0.0.1"], authority }: { names?: readonly string[]; authority?: TlsFiles } = {},
): TlsFiles {
  const files = { certPath: join(folder, `${name}.crt`), keyPath: join(folder, `${name}.key`) };
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", files.keyPath];
  const subject = ["-subj", `/CN=${name}`, "-addext", `subjectAltName=${names.join(",")}`];
  const signer =
    authority === undefined
      ? []
      : ["-CA", authority.certPath, "-CAkey", authority.keyPath, "-addext", "basicConstraints=critical,CA:FALSE"];
  const args = ["req", "-x509", ...key, "-out", files.certPath, ...subject, "-days", "2", ...signer];
  execFileSync("openssl", args, { stdio: "pipe" });
  return files;
}

/** Has the clients of this process take a certificate that nobody else has signed. */
export function trustCertificate(cert: string): void {
  setDefaultCACertificates([...getCACertificates("default"), cert]);
}
