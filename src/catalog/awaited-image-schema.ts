/**
 * Sandboxes that wait for the image of their agent provider while it is built, in the vocabulary that both databases
 * share; a migration, which never changes once published. `awaits_image` is 1 until then, and NULL of all others.
 */
export const AWAITED_IMAGES = `
ALTER TABLE sandboxes ADD COLUMN awaits_image bigint;
CREATE INDEX sandboxes_awaiting ON sandboxes (id) WHERE awaits_image = 1;
`;
