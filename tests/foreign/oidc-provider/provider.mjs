// An OpenID provider whose keys change on request. Prints its address, then serves until its stdin ends.
//
//   POST /rotate        a new key signs from now on; the old ones are still published
//   POST /forget        only the key that signs is still published
import { generateKeyPairSync } from 'node:crypto';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

// The packages are below the folder that is the first argument.
const require = createRequire(`${process.argv[2]}/package.json`);
const { default: Default, Provider = Default } = await import(pathToFileURL(require.resolve('oidc-provider')));

let keys = [];
let handle;
let issuer;

function rotate() {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  keys = [{ ...privateKey.export({ format: 'jwk' }), kid: `key-${keys.length}-${Date.now()}`, use: 'sig', alg: 'RS256' }, ...keys];
  start();
}

function start() {
  const client = (id) => ({
    client_id: id, client_secret: `${id}-secret`, grant_types: ['client_credentials'], redirect_uris: [], response_types: [],
  });
  const resource = {
    scope: 'a2a:read a2a:write', audience: 'agents', accessTokenFormat: 'jwt', accessTokenTTL: 600, jwt: { sign: { alg: 'RS256' } },
  };
  const provider = new Provider(issuer, {
    clients: [client('anna'), client('ben')],
    jwks: { keys },
    scopes: ['a2a:read', 'a2a:write'],
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => 'https://agents.example',
        useGrantedResource: () => true,
        getResourceServerInfo: () => resource,
      },
    },
  });
  handle = provider.callback();
}

const server = createServer((request, response) => {
  if (request.method === 'POST' && (request.url === '/rotate' || request.url === '/forget')) {
    if (request.url === '/rotate') rotate();
    else { keys = keys.slice(0, 1); start(); }
    response.end('done');
    return;
  }
  handle(request, response);
});
server.listen(0, '127.0.0.1', () => {
  issuer = `http://127.0.0.1:${server.address().port}`;
  rotate();
  console.log(issuer);
});
process.stdin.resume();
process.stdin.on('end', () => process.exit(0));
