import type { OwnedRoute } from "./owned.test-kit.ts";

/** Routes of the engine itself that name or list records with owners. */
export const ENGINE_ROUTES: Readonly<Record<string, OwnedRoute>> = {};

/** Those that do neither: why. */
export const ENGINE_ROUTES_WITHOUT: Readonly<Record<string, string>> = {};
