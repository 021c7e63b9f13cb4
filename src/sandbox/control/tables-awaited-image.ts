import type { Migration } from "../../db/migration.ts";

/**
 * Sandboxes that wait for the image of their agent provider while it is built, in the vocabulary that both databases
 * share. `awaits_image` is 1 until then, and NULL of all others.
 */
const AWAITED_IMAGES = `
ALTER TABLE sandboxes ADD COLUMN awaits_image bigint;
CREATE INDEX sandboxes_awaiting ON sandboxes (id) WHERE awaits_image = 1;
`;

export const AWAITED_IMAGES_MIGRATION: Migration = {
  name: "awaited images",
  sqlite: 12,
  postgres: 8,
  sql: AWAITED_IMAGES,
};
