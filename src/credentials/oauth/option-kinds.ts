import { z } from "zod";
import { hideUser, isSafeKeyUrl } from "../../auth/option-kinds.ts";
import { bearerToken, HIDDEN, listOf, type Kind } from "../../config/kinds.ts";
import { jsonIn } from "../../core/json-text.ts";

/** The providers of which only the app is to be said. */
export const PRESET_PROVIDERS = ["github", "google", "microsoft", "notion", "atlassian", "slack"] as const;
export type PresetProvider = (typeof PRESET_PROVIDERS)[number];

const URL_CHARS = 2_048;
const TEXT_CHARS = 1_000;
const MAX_ITEMS = 100;

/** Codes and secrets go there: nobody on the way may read them. */
const url = z.string().max(URL_CHARS).regex(/^\S+$/).refine(isSafe);
const visible = z
  .string()
  .max(TEXT_CHARS)
  .regex(/^[\x21-\x7e]+$/);

/** A provider of accounts as the operator describes it; what a preset has may be left out. */
const provider = z.strictObject({
  client_id: visible,
  client_secret: visible,
  /** As people call it; the name by default. */
  title: z.string().min(1).max(TEXT_CHARS).optional(),
  /** Says the endpoints where they are not set (OpenID Connect Discovery). */
  issuer: url.optional(),
  authorize_url: url.optional(),
  token_url: url.optional(),
  device_authorization_url: url.optional(),
  scopes: z.array(visible).max(MAX_ITEMS).optional(),
  /** Further parameters of the authorization request. */
  parameters: z.record(visible, z.string().max(TEXT_CHARS)).optional(),
  client_authentication: z.enum(["basic", "post"]).optional(),
  pkce: z.boolean().optional(),
});

export type ProviderSetting = z.output<typeof provider>;
export type ProviderSettings = Readonly<Record<string, ProviderSetting>>;

const NAME = /^[a-z0-9][a-z0-9_-]{0,62}$/;

const settings = z
  .record(z.string().regex(NAME), provider)
  .refine((named) => Object.keys(named).length <= MAX_ITEMS)
  .refine((named) => Object.entries(named).every(([name, one]) => isComplete(name, one)));

function isComplete(name: string, { issuer, authorize_url, token_url }: ProviderSetting): boolean {
  const hasEndpoints = authorize_url !== undefined && token_url !== undefined;
  return hasEndpoints || issuer !== undefined || PRESET_PROVIDERS.some((preset) => preset === name);
}

function isSafe(text: string): boolean {
  const parsed = URL.parse(text);
  return parsed !== null && parsed.username === "" && parsed.password === "" && isSafeKeyUrl(parsed);
}

/** A table of providers by name; in a variable as JSON. */
export const providerSettings: Kind<ProviderSettings> = {
  accepts:
    "providers by name, each with client_id and client_secret, and with authorize_url and token_url (https://), or " +
    `issuer, unless it is one of ${PRESET_PROVIDERS.join(", ")}`,
  label: "table of tables; JSON in the variable",
  parse: (text) => settingsIn(jsonIn(text)),
  parseNative: settingsIn,
  format: (value) => JSON.stringify(value),
  hide: hideSecrets,
};

function settingsIn(value: unknown): ProviderSettings | undefined {
  const result = settings.safeParse(value);
  return result.success ? result.data : undefined;
}

/** What does not parse might hold a secret anywhere. */
function hideSecrets(text: string): string {
  const value = settingsIn(jsonIn(text));
  if (value === undefined) return HIDDEN;
  const hidden = Object.entries(value).map(([name, one]) => [name, { ...one, client_secret: HIDDEN }]);
  return JSON.stringify(Object.fromEntries(hidden));
}

/** Addresses that browsers may be sent back to, letter by letter. */
export const redirectUris = listOf({
  item: (text) =>
    text.length <= URL_CHARS && isSafe(text) && /^[\x21-\x7e]+$/.test(text) && !text.includes("#") ? text : undefined,
  accepts: "addresses separated by commas, each https:// (http:// on a loopback host only) without user or fragment",
  label: "list of URLs",
  hide: hideUser,
});

/** The secret of an app that is registered with a provider. */
export const clientSecretText: Kind<string> = { ...bearerToken, label: "client secret" };

/** Where browsers find this server; providers compare it letter by letter. */
export const publicOrigin: Kind<string> = {
  accepts: "an http:// or https:// address with a host, and a port where it needs one",
  label: "origin",
  parse(text) {
    const url = URL.parse(text);
    const isBare = url !== null && /^https?:$/.test(url.protocol) && url.href === `${url.origin}/`;
    return isBare && !/[?#]/.test(text) ? url.origin : undefined;
  },
  format: String,
  hide: hideUser,
};
