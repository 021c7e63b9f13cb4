/**
 * Secrets that people paste into what they want remembered. A memory is read by many, and goes to replicas and models: what
 * is a key or a token by its form is masked before it is stored. The forms are precise, for a sentence about passwords is
 * no password; what has no form of its own is found by the name in front of it. Every repetition is bounded, or ends
 * the text.
 */
const FORMS: readonly (readonly [RegExp, string])[] = [
  [/-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----|$)/g, "[masked key]"],
  [/\b(?:AKIA|ASIA)[0-9A-Z]{16}\b/g, "[masked key]"],
  [/\bgh[pousr]_[A-Za-z0-9]{36,255}/g, "[masked token]"],
  [/\bgithub_pat_[A-Za-z0-9_]{22,255}/g, "[masked token]"],
  [/\bglpat-[A-Za-z0-9_-]{20,255}/g, "[masked token]"],
  [/\bxox[abeprs]-[A-Za-z0-9-]{10,255}/g, "[masked token]"],
  [/\bengine_[a-z]{2,20}_[A-Za-z0-9]{40,80}/g, "[masked token]"],
  [/\bnpm_[A-Za-z0-9]{36}\b/g, "[masked token]"],
  [/\bsk-[A-Za-z0-9_-]{20,255}/g, "[masked key]"],
  [/\b[sr]k_(?:live|test)_[0-9A-Za-z]{16,255}/g, "[masked key]"],
  [/\bAIza[0-9A-Za-z_-]{35}/g, "[masked key]"],
  [/\beyJ[A-Za-z0-9_-]{10,4000}\.eyJ[A-Za-z0-9_-]{10,8000}\.[A-Za-z0-9_-]{10,2000}/g, "[masked token]"],
  [/\b(Bearer|Basic) +[A-Za-z0-9._~+/=-]{20,4000}/g, "$1 [masked token]"],
  [/\b([a-z][a-z0-9+.-]{1,20}:\/\/[^\s:@/]{0,200}:)[^\s@/]{1,500}@/gi, "$1[masked]@"],
  [
    /\b((?:[a-z0-9]{1,30}[_-]){0,3}(?:password|passwd|secret|api[_-]?key|access[_-]?key|token|secret[_-]?key)["']?\s{0,5}[:=]\s{0,5}["']?)(?=[^\s"',;]{0,200}\d)(?=[^\s"',;]{0,200}[a-z])[^\s"',;[\]]{8,500}/gi,
    "$1[masked]",
  ],
];

/** The text with its secrets masked; masking it again changes nothing. */
export function maskSecrets(text: string): string {
  let masked = text;
  for (const [form, replacement] of FORMS) masked = masked.replace(form, replacement);
  return masked;
}

/** The same for every text of a JSON value, which must not be nested deeper than the stack takes. Keys stay. */
export function maskSecretsIn(value: unknown): unknown {
  if (typeof value === "string") return maskSecrets(value);
  if (Array.isArray(value)) return value.map(maskSecretsIn);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, maskSecretsIn(inner)]));
}
