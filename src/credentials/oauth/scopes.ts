import { EngineError } from "../../core/errors.ts";
import type { Provider } from "./providers.ts";

export type ScopeRequest = {
  /** What will read with the grant: decides on the scopes where none are given. Undefined: no data source will. */
  sourceType: string | undefined;
  scopes: readonly string[] | undefined;
};

/** The scopes to ask for; throws `bad_request_body` for what the provider does not have. */
export function scopesOf(provider: Provider, { sourceType, scopes: wanted }: ScopeRequest): readonly string[] {
  const { title, scopes, usualScopes = [], constantScopes, scopeStyle } = provider;
  const known = new Map(Object.entries(scopes));
  const usual = sourceType === undefined ? usualScopes : known.get(sourceType);
  if (usual === undefined) {
    const names = [...known.keys()].join(", ");
    throw new EngineError("bad_request_body", `data_source_type: with ${title} it is one of: ${names}`);
  }
  if (wanted !== undefined && wanted.length > 0 && scopeStyle === undefined) {
    throw new EngineError("bad_request_body", `scopes: ${title} has none`);
  }
  return [...new Set([...(wanted ?? usual), ...constantScopes])];
}
