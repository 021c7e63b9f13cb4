/** Owners of the records of sandboxes: a part of `OWNER_RECORDS`, while the audit log has an index by target. */
export const SANDBOX_OWNERS = `
`;
