import { createPrivateKey, generateKeyPair, X509Certificate, type KeyObject } from "node:crypto";
import { isIP } from "node:net";
import { createSecureContext, type SecureContext } from "node:tls";
import { promisify } from "node:util";
import type * as X509 from "@peculiar/x509";
import type { Clock } from "../../../core/clock.ts";
import type { Random } from "../../../core/random.ts";

const DAY_MS = 86_400_000;
/** Of the authority: a sandbox may be there for years. */
const AUTHORITY_DAYS = 3_650;
const LEAF_DAYS = 7;
/** A leaf is renewed when less is left of it. */
const LEAF_LEFT_DAYS = 3;
const P256 = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;

type Sources = { clock: Clock; random: Random };
type Keys = { publicKey: KeyObject; privateKey: KeyObject };

type Leaf = { context: Promise<SecureContext>; renewAtMs: number };

/**
 * A certificate authority of one sandbox, which trusts it for the hosts that the gateway speaks for. Its key stays
 * outside; certificates of hosts are made when they are needed, and kept in memory.
 */
export class GatewayAuthority {
  /** PEM, installed in the sandbox. */
  readonly certificate: string;
  readonly #key: string;
  readonly #sources: Sources;
  readonly #leaves = new Map<string, Leaf>();

  private constructor(pem: { key: string; certificate: string }, sources: Sources) {
    this.certificate = pem.certificate;
    this.#key = pem.key;
    this.#sources = sources;
  }

  static async make(sources: Sources): Promise<GatewayAuthority> {
    const x509 = await loadX509();
    const keys = await makeKeys();
    const publicKey = verifyingKey(keys.publicKey);
    const { notBefore, notAfter } = validity(sources.clock, AUTHORITY_DAYS);
    const serialNumber = serial(sources.random);
    const certificate = await x509.X509CertificateGenerator.createSelfSigned({
      serialNumber,
      // Each has a name of its own: clients look authorities up by it.
      name: `CN=engine gateway ${serialNumber}`,
      notBefore,
      notAfter,
      signingAlgorithm: P256,
      keys: { publicKey, privateKey: signingKey(keys.privateKey) },
      extensions: [
        new x509.BasicConstraintsExtension(true, 0, true),
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
        await x509.SubjectKeyIdentifierExtension.create(publicKey),
      ],
    });
    return new GatewayAuthority({ key: pemOf(keys.privateKey), certificate: certificate.toString("pem") }, sources);
  }

  /** From what `export()` gave. Throws for what is none, and for a key of another certificate. */
  static open(pem: { key: string; certificate: string }, sources: Sources): GatewayAuthority {
    const certificate = new X509Certificate(pem.certificate);
    if (!certificate.ca || !certificate.checkPrivateKey(createPrivateKey(pem.key))) {
      throw new Error("the certificate authority of a sandbox and its key do not belong together");
    }
    return new GatewayAuthority(pem, sources);
  }

  /** To be kept on the host, where nobody else reads it. */
  export(): { key: string; certificate: string } {
    return { key: this.#key, certificate: this.certificate };
  }

  /** What TLS as that canonical host is spoken with. */
  contextFor(host: string): Promise<SecureContext> {
    const nowMs = this.#sources.clock.nowMs();
    const known = this.#leaves.get(host);
    if (known !== undefined && nowMs < known.renewAtMs) return known.context;
    const leaf = { context: this.#issue(host), renewAtMs: nowMs + (LEAF_DAYS - LEAF_LEFT_DAYS) * DAY_MS };
    this.#leaves.set(host, leaf);
    leaf.context.catch(() => this.#leaves.get(host) === leaf && this.#leaves.delete(host));
    return leaf.context;
  }

  async #issue(host: string): Promise<SecureContext> {
    const x509 = await loadX509();
    const keys = await makeKeys();
    const publicKey = verifyingKey(keys.publicKey);
    const authority = new x509.X509Certificate(this.certificate);
    const certificate = await x509.X509CertificateGenerator.create({
      serialNumber: serial(this.#sources.random),
      // The name is in the extension, which is critical where there is no subject (RFC 5280 §4.2.1.6).
      issuer: authority.subject,
      ...validity(this.#sources.clock, LEAF_DAYS),
      publicKey,
      signingKey: signingKey(createPrivateKey(this.#key)),
      signingAlgorithm: P256,
      extensions: [
        new x509.BasicConstraintsExtension(false, undefined, true),
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
        new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
        new x509.SubjectAlternativeNameExtension([{ type: isIP(host) === 0 ? "dns" : "ip", value: host }], true),
        await x509.SubjectKeyIdentifierExtension.create(publicKey),
        await x509.AuthorityKeyIdentifierExtension.create(authority),
      ],
    });
    const cert = `${certificate.toString("pem")}\n${this.certificate}`;
    return createSecureContext({ key: pemOf(keys.privateKey), cert, minVersion: "TLSv1.2" });
  }
}

/** Only where there are sandboxes with such credentials; it needs the metadata of decorators to be there before. */
async function loadX509(): Promise<typeof X509> {
  await import("reflect-metadata");
  return await import("@peculiar/x509");
}

function makeKeys(): Promise<Keys> {
  return promisify(generateKeyPair)("ec", { namedCurve: P256.namedCurve });
}

function signingKey(key: KeyObject): ReturnType<KeyObject["toCryptoKey"]> {
  return key.toCryptoKey(P256, false, ["sign"]);
}

function verifyingKey(key: KeyObject): ReturnType<KeyObject["toCryptoKey"]> {
  return key.toCryptoKey(P256, true, ["verify"]);
}

function pemOf(key: KeyObject): string {
  return key.export({ type: "pkcs8", format: "pem" }).toString();
}

/** From a day ago on: clocks differ. */
function validity(clock: Clock, days: number): { notBefore: Date; notAfter: Date } {
  const nowMs = clock.nowMs();
  return { notBefore: new Date(nowMs - DAY_MS), notAfter: new Date(nowMs + days * DAY_MS) };
}

/** 126 bits, positive and without zeros before (RFC 5280 §4.1.2.2). */
function serial(random: Random): string {
  const bytes = random.fill(new Uint8Array(16));
  bytes[0] = ((bytes[0] ?? 0) & 0x3f) | 0x40;
  return Buffer.from(bytes).toString("hex");
}
