import { createPrivateKey, X509Certificate, type KeyObject } from "node:crypto";
import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createSecureContext } from "node:tls";
import { messageOf, StartupError, systemCodeOf } from "../../core/errors.ts";

/** Where a server's certificate and its private key are: PEM, the certificate first and those that signed it after it. */
export type TlsFiles = { readonly certPath: string; readonly keyPath: string };

/** What was in those files, checked: the key is the certificate's. */
export type TlsPair = {
  readonly files: TlsFiles;
  readonly cert: string;
  readonly key: string;
  /** The last moment at which clients take the certificate. */
  readonly expiresAtMs: number;
};

/**
 * What a server speaks, for both drivers. Forward secrecy and authenticated encryption only: the "intermediate" list of
 * https://wiki.mozilla.org/Security/Server_Side_TLS without the ciphers that need Diffie-Hellman parameters.
 */
export const MIN_TLS_VERSION = "TLSv1.2";
const TLS_1_3 = ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"];
const TLS_1_2 = [
  "ECDHE-ECDSA-AES128-GCM-SHA256",
  "ECDHE-RSA-AES128-GCM-SHA256",
  "ECDHE-ECDSA-AES256-GCM-SHA384",
  "ECDHE-RSA-AES256-GCM-SHA384",
  "ECDHE-ECDSA-CHACHA20-POLY1305",
  "ECDHE-RSA-CHACHA20-POLY1305",
];
/** OpenSSL's own list is for TLS 1.2; node takes one for both. */
export const TLS_1_2_CIPHERS = TLS_1_2.join(":");
export const TLS_CIPHERS = [...TLS_1_3, ...TLS_1_2].join(":");

/** @throws StartupError (exit code 2) that names the file and says what is wrong with it. */
export function readTlsPair(files: TlsFiles): TlsPair {
  return checkTlsPair(files, readText(files.certPath, "certificate"), readText(files.keyPath, "key"));
}

/** As `readTlsPair`, without holding up the thread. Undefined while the files still have what the pair has. */
export async function readChangedTlsPair(serving: TlsPair): Promise<TlsPair | undefined> {
  const { files } = serving;
  const [cert, key] = await Promise.all([
    readFile(files.certPath, "utf8").catch((error: unknown) => unreadable(files.certPath, "certificate", error)),
    readFile(files.keyPath, "utf8").catch((error: unknown) => unreadable(files.keyPath, "key", error)),
  ]);
  return cert === serving.cert && key === serving.key ? undefined : checkTlsPair(files, cert, key);
}

/** Whether the files have what the pair has: a driver that reads them itself asks it after it did. */
export function isStillThere({ files, cert, key }: TlsPair): boolean {
  return readText(files.certPath, "certificate") === cert && readText(files.keyPath, "key") === key;
}

function readText(path: string, what: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    return unreadable(path, what, error);
  }
}

function unreadable(path: string, what: string, error: unknown): never {
  const reasons: Readonly<Record<string, string>> = {
    ENOENT: "there is no such file",
    EACCES: "permission denied",
    EISDIR: "it is a folder",
  };
  const reason = reasons[systemCodeOf(error) ?? ""] ?? messageOf(error);
  throw new StartupError(`cannot read the TLS ${what} ${path}: ${reason}`, 2, error);
}

function checkTlsPair(files: TlsFiles, cert: string, key: string): TlsPair {
  const leaf = certificateIn(files.certPath, cert);
  if (!leaf.checkPrivateKey(privateKeyIn(files.keyPath, key))) {
    throw new StartupError(`the TLS key ${files.keyPath} is not the key of the certificate ${files.certPath}`, 2);
  }
  try {
    // What is well-formed may still be refused by OpenSSL.
    createSecureContext({ cert, key, minVersion: MIN_TLS_VERSION, ciphers: TLS_CIPHERS });
  } catch (error) {
    throw new StartupError(`the TLS certificate ${files.certPath} cannot be used: ${messageOf(error)}`, 2, error);
  }
  return { files, cert, key, expiresAtMs: Date.parse(leaf.validTo) };
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** The first certificate; each of the others is looked at too. */
function certificateIn(path: string, text: string): X509Certificate {
  const blocks = text.match(CERTIFICATE) ?? [];
  const [leaf] = blocks.map((block) => {
    try {
      return new X509Certificate(block);
    } catch (error) {
      throw new StartupError(`the TLS certificate ${path} is damaged: ${messageOf(error)}`, 2, error);
    }
  });
  if (leaf === undefined) {
    throw new StartupError(`the TLS certificate ${path} is not PEM: no line says BEGIN CERTIFICATE`, 2);
  }
  return leaf;
}

function privateKeyIn(path: string, text: string): KeyObject {
  if (!/-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(text)) {
    throw new StartupError(`the TLS key ${path} is not PEM: no line says BEGIN PRIVATE KEY`, 2);
  }
  if (/-----BEGIN ENCRYPTED PRIVATE KEY-----|^Proc-Type: 4,ENCRYPTED/m.test(text)) {
    throw new StartupError(`the TLS key ${path} is protected by a passphrase, which is not supported`, 2);
  }
  try {
    return createPrivateKey(text);
  } catch (error) {
    throw new StartupError(`the TLS key ${path} is damaged: ${messageOf(error)}`, 2, error);
  }
}
