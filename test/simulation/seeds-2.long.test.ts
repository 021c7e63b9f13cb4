import { testSeeds } from "./seeds.test-kit.ts";

testSeeds(60);
