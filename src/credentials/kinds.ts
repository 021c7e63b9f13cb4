import { z } from "zod";

/**
 * The kinds of credentials and their fields. `docs/credentials.md` is the same in words. Secret fields never leave the
 * store but to whoever uses the credential; the rest may be shown as a part of the preview.
 */
const MAX_SECRET_CHARS = 64 * 1024;
const MAX_TEXT_CHARS = 2_048;

const secret = z.string().min(1).max(MAX_SECRET_CHARS);
const text = z.string().min(1).max(MAX_TEXT_CHARS);

export const credentialValue = z.discriminatedUnion("kind", [
  z.strictObject({
    kind: z.literal("pat").describe("A personal access token."),
    token: secret,
    username: text.optional().describe("Where the service asks for a name besides, as Git over HTTPS does."),
  }),
  z.strictObject({ kind: z.literal("basic").describe("A name and a password."), username: text, password: secret }),
  z.strictObject({
    kind: z
      .literal("oauth2")
      .describe("Tokens of an OAuth 2 grant; `/v1/oauth/{provider}/start` makes such by itself."),
    access_token: secret,
    refresh_token: secret.optional(),
    token_type: text.optional(),
    scope: z.string().max(MAX_TEXT_CHARS).optional(),
    expires_at: z.iso.datetime({ offset: true }).optional().describe("When the access token ends; RFC 3339."),
    provider: text
      .optional()
      .describe("Who refreshes it: `google`, `notion`, `atlassian`, `slack`, or a name of `oauth.providers`."),
    client_id: text.optional().describe("Of the app that the grant is for, where it is not the operator's."),
    client_secret: secret.optional(),
  }),
  z.strictObject({
    kind: z.literal("url").describe("An address that holds a secret: of a database, or of a webhook."),
    url: z
      .string()
      .max(MAX_SECRET_CHARS)
      .refine((value) => URL.canParse(value), "is not a URL"),
  }),
  z.strictObject({
    kind: z.literal("aws_creds").describe("Keys of an AWS account, or of what is compatible with one."),
    access_key_id: text,
    secret_access_key: secret,
    session_token: secret.optional(),
    region: text.optional(),
  }),
  z.strictObject({
    kind: z.literal("api_key").describe("A key that travels in a header."),
    key: secret,
    header: text.optional().describe("Name of the header; the source's own by default."),
  }),
  z.strictObject({
    kind: z.literal("github_app").describe("A GitHub App and one of its installations."),
    app_id: text,
    installation_id: text,
    private_key: secret.refine((value) => value.includes("PRIVATE KEY-----"), "is not a private key in PEM"),
  }),
]);

export type CredentialValue = z.output<typeof credentialValue>;
export type CredentialKind = CredentialValue["kind"];

/** What may be shown of a credential so that its owner knows it again. */
export function previewOf(value: CredentialValue): string {
  switch (value.kind) {
    case "pat":
      return joined(value.username, masked(value.token));
    case "basic":
      // A password is short, and a part of it is a large part.
      return joined(value.username, HIDDEN);
    case "oauth2":
      return joined(value.provider, masked(value.access_token));
    case "url":
      return hiddenUrl(value.url);
    case "aws_creds":
      return joined(value.region, masked(value.access_key_id));
    case "api_key":
      return joined(value.header, masked(value.key));
    case "github_app":
      return `app ${value.app_id}, installation ${value.installation_id}`;
  }
}

const HIDDEN = "••••";
/** Of a secret of this length four characters give nothing away. */
const MIN_CHARS_TO_SHOW = 20;

function masked(value: string): string {
  return value.length < MIN_CHARS_TO_SHOW ? HIDDEN : `${HIDDEN}${value.slice(-4)}`;
}

function joined(name: string | undefined, shown: string): string {
  return name === undefined ? shown : `${name} ${shown}`;
}

/** Scheme and host: user, path and query of a webhook or a database may each be a secret. */
function hiddenUrl(value: string): string {
  const { protocol, host } = new URL(value);
  return `${protocol}//${host === "" ? "" : `${host}/`}${HIDDEN}`;
}
