import { validateHeaderName, validateHeaderValue } from "node:http";
import { z } from "zod";
import { EgressRefusal } from "../http/refusal.ts";

/** Of the kinds of credentials of the store, those that a request can carry, with what it carries of them. */
const addable = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("pat"), token: z.string(), username: z.string().optional() }),
  z.object({ kind: z.literal("basic"), username: z.string(), password: z.string() }),
  z.object({ kind: z.literal("oauth2"), access_token: z.string() }),
  z.object({ kind: z.literal("api_key"), key: z.string(), header: z.string().optional() }),
]);

export type AddableCredential = z.output<typeof addable>;

/** Undefined for a value that no request can carry. */
export function toAddable(value: unknown): AddableCredential | undefined {
  return addable.safeParse(value).data;
}

/** How a key is added that names no header: `Authorization: Bearer`, or a header with the key alone. */
export type KeyStyle = "bearer" | { header: string };

/** What a request is for: git has its own ways of saying who asks. */
export type Purpose = "git" | KeyStyle;

/** The field that carries a credential; `secrets`: the texts that no answer's head may show. */
export type Addition = { name: string; value: string; secrets: readonly string[] };

/** Of one connection, or of how the body is sent: no credential travels in these. */
const NOT_FOR_SECRETS = new Set([
  "connection",
  "content-length",
  "expect",
  "host",
  "keep-alive",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** Throws `EgressRefusal`, without any part of the credential, for one that fits in no header. */
export function additionOf(credential: AddableCredential, purpose: Purpose): Addition {
  const addition = fieldOf(credential, purpose);
  try {
    validateHeaderName(addition.name);
    validateHeaderValue(addition.name, addition.value);
  } catch {
    throw new EgressRefusal(502, "the credential has characters that no header may have");
  }
  if (NOT_FOR_SECRETS.has(addition.name)) {
    throw new EgressRefusal(502, `the credential is for the header ${addition.name}, which is about the connection`);
  }
  return addition;
}

function fieldOf(credential: AddableCredential, purpose: Purpose): Addition {
  switch (credential.kind) {
    case "pat": {
      const token = credential.token.trim();
      return purpose === "git" ? basic(credential.username ?? "x-access-token", token) : bearer(token);
    }
    case "basic":
      return basic(credential.username, credential.password);
    case "oauth2": {
      const token = credential.access_token.trim();
      return purpose === "git" ? basic("oauth2", token) : bearer(token);
    }
    case "api_key": {
      const key = credential.key.trim();
      const header = credential.header ?? (typeof purpose === "object" ? purpose.header : undefined);
      return header === undefined ? bearer(key) : { name: header.trim().toLowerCase(), value: key, secrets: [key] };
    }
  }
}

function bearer(token: string): Addition {
  return { name: "authorization", value: `Bearer ${token}`, secrets: [token] };
}

function basic(username: string, password: string): Addition {
  const encoded = Buffer.from(`${username}:${password}`).toString("base64");
  return { name: "authorization", value: `Basic ${encoded}`, secrets: [password, encoded] };
}
