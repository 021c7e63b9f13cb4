import { onPostgres } from "../../../catalog/postgres/contract-server.test-kit.ts";
import { imagesContract } from "./contract.test-kit.ts";

onPostgres("images", (open) => imagesContract("postgres", open));
