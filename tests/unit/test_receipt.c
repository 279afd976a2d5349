/* Receipts: written and read back bit for bit, every change of one is found, and nothing that is none is read. */
#include "base/sha256.h"
#include "base/trace.h"
#include "cli/receipt_read.h"
#include "launch/kept_file.h"
#include "prove_worlds.h"
#include "report/receipt/digest.h"
#include "report/receipt/receipt.h"
#include "report/receipt/try.h"
#include "report/receipt/words.h"
#include "report_json.h"

/* ---- a receipt whose figures are drawn: B takes 0.9 of A's joules and is 1.25 times as fast ---- */

static struct hec_experiment_trial receipt_trial(int pair, int side, double joules) {
    struct hec_experiment_trial t = {
        .pair = pair, .side = side, .stopped = true, .loss_count = 640, .gradients = hec_gradients_none()};
    t.gradients.all = t.gradients.first = 0.5 + 0.001 * pair;
    for (int i = 0; i < 5; i++)
        t.gradients.part[i] = -1 + 0.002 * pair;
    double noise = 1 + 0.004 * world_normal();
    t.steady = (struct hec_trial_block){(side ? 8 / 3.0 : 10 / 3.0) * (1 + 0.003 * world_normal()),
                                        joules * 400 / 3 * noise, 400, 100};
    t.run = (struct hec_trial_block){t.steady.seconds + 1.7, t.steady.joules + 130.1, 420, 105};
    for (int i = 0; i < HEC_EXPERIMENT_BINS; i++)
        t.loss[i] = 0.3 + 2.1 * exp(-i / 8.0) + 0.003 * world_normal();
    return t;
}

static void receipt_add_words(struct hec_receipt *r, struct hec_receipt_words *to, const char *const *words) {
    for (; *words; words++)
        hec_receipt_add_word(r, to, *words);
}

/* pairs 0: a baseline of 4. Free it with hec_receipt_free. */
static void receipt_make(struct hec_receipt *r, int pairs) {
    static const char *const a[] = {"python3", "train.py", "--note", "a | b\n\033[31mred", NULL};
    static const char *const b[] = {"python3", "train.py", "--bf16", NULL};
    static const char *const variables[] = {
        "PATH=/bin", "OMP_NUM_THREADS=4", "HF_TOKEN=hf_geheim", "CUDA_VISIBLE_DEVICES=0", "nothing", "CUDA_EMPTY=",
        NULL};
    world_state = 7;
    *r = (struct hec_receipt){.steps = 105,
                              .warm_up = 1,
                              .writes = HEC_RECEIPT_ON_DISK,
                              .trace = HEC_TRACE_OFF,
                              .hooks = true,
                              .plan = {.seed = UINT64_MAX - 1, .pairs = pairs, .gradients = true, .loss_steps = 105}};
    snprintf(r->created, sizeof r->created, "2026-11-22T16:00:00+00:00");
    snprintf(r->hec_version, sizeof r->hec_version, "%s", HEC_VERSION);
    snprintf(r->unit, sizeof r->unit, "sample");
    hec_receipt_set(r, &r->folder, "/home/x/träume");
    receipt_add_words(r, &r->command[0], a);
    if (pairs)
        receipt_add_words(r, &r->command[1], b);
    if (pairs) {
        struct hec_receipt_tried base = {.outcome = HEC_TRIED_BASE,
                                         .trials = 2,
                                         .joules_per_unit = 0.1,
                                         .units_per_second = 5000,
                                         .joules = {NAN, NAN, NAN},
                                         .rate = {NAN, NAN, NAN}};
        struct hec_receipt_tried kept = {.levers = "bf16_autocast",
                                         .outcome = HEC_TRIED_KEPT,
                                         .trials = 1,
                                         .joules_per_unit = 0.09,
                                         .units_per_second = 5100,
                                         .joules = {0.88, 0.9, 0.92},
                                         .rate = {NAN, 1.02, NAN},
                                         .text = "on: 1 module"};
        struct hec_receipt_tried failed = {.levers = "compile",
                                           .outcome = HEC_TRIED_FAILED,
                                           .trials = 1,
                                           .joules_per_unit = NAN,
                                           .units_per_second = NAN,
                                           .joules = {NAN, NAN, NAN},
                                           .rate = {NAN, NAN, NAN},
                                           .text = "exit status 1: a | b"};
        hec_receipt_add_word(r, &r->levers, "bf16_autocast");
        hec_receipt_add_tried(r, &base);
        hec_receipt_add_tried(r, &kept);
        hec_receipt_add_tried(r, &failed);
        struct hec_receipt_block on = {"bf16_autocast", false, 0.5, 3, 2, 0.09, 5100},
                                 gone = {.levers = "compile", .failed = true};
        gone.switching_s = gone.settling_s = gone.seconds = gone.joules_per_unit = gone.units_per_second = NAN;
        hec_receipt_add_block(r, &on);
        hec_receipt_add_block(r, &gone);
        r->plan.spent_joules = 1200;
        r->plan.spent_seconds = 100;
    }
    hec_receipt_add_environment(r, (char *const *)variables);
    hec_receipt_add_fact(r, &r->facts, "device", "NVIDIA H100 80GB HBM3");
    hec_receipt_add_fact(r, &r->facts, "driver", "580.95");
    hec_receipt_add_fact(r, &r->facts, "cpu", "Xeon");
    hec_receipt_add_fact(r, &r->facts, "host", "node1");
    hec_receipt_add_word(r, &r->covered, "/home/x");
    hec_receipt_add_word(r, &r->covered, "/tmp");
    hec_receipt_add_word(r, &r->left, "what was sent over the network");
    for (int side = 0; side < (pairs ? 2 : 1); side++) {
        struct hec_experiment_trial t = receipt_trial(-1, side, 1.3);
        hec_receipt_add_trial(r, &t);
    }
    for (int i = 0; i < 2 * pairs; i++) {
        int side = hec_sequential_b_first(r->plan.seed, i / 2) ^ (i & 1);
        struct hec_experiment_trial t = receipt_trial(i / 2, side, side ? 0.9 : 1);
        hec_receipt_add_trial(r, &t);
    }
    for (int i = 0; i < 4 && !pairs; i++) {
        struct hec_experiment_trial t = receipt_trial(i, 0, 1);
        hec_receipt_add_trial(r, &t);
    }
    hec_receipt_judge(r);
}

static struct hec_receipt r; /* of a test: freed before the next */

static void make(int pairs) {
    hec_receipt_free(&r);
    receipt_make(&r, pairs);
}

static char *text_of(const struct hec_receipt *of) {
    assert_int_equal(hec_receipt_json(of, page()), 0);
    return strdup(hec_buf_text(&out));
}

/* What is read back from the JSON of a receipt. */
static void read_back(struct hec_receipt *there, struct hec_receipt *back) {
    struct hec_why why = {""};
    json_t *root;
    hec_receipt_judge(there);
    char *text = text_of(there);
    assert_int_equal(hec_receipt_read(text, strlen(text), back, &root, &why), 0);
    free(text);
    json_decref(root);
}

static char *made(int pairs) {
    make(pairs);
    char *text = text_of(&r);
    return text;
}

/* FIPS 180-4's examples, and lengths around the ends of blocks (by coreutils' sha256sum). */
TEST(sha256) {
    char text[HEC_SHA256_TEXT], as[128];
    memset(as, 'a', sizeof as);
    assert_string_equal(hec_sha256(text, "", 0), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_string_equal(hec_sha256(text, "abc", 3), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_string_equal(hec_sha256(text, as, 55), "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318");
    assert_string_equal(hec_sha256(text, as, 56), "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a");
    assert_string_equal(hec_sha256(text, as, 64), "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
    assert_string_equal(hec_sha256(text, as, 119), "31eba51c313a5c08226adf18d4a359cfdfd8d2e816b13f4af952f7ea6584dcfb");
}

/* ---- there and back ---- */

TEST(round_trip) {
    for (int pairs = 0; pairs <= 6; pairs += 3) {
        struct hec_receipt there, back;
        receipt_make(&there, pairs);
        there.trials[1].loss[3] = NAN;
        there.trials[2].loss[4] = INFINITY;
        there.trials[2].steady.joules = 0.1 + 0.2;
        there.trials[3].steady.units = NAN;
        there.trials[3].run.seconds = 5e-324;
        read_back(&there, &back);
        assert_int_equal(back.trial_count, there.trial_count);
        for (int i = 0; i < there.trial_count; i++)
            for (size_t k = 0; k < HEC_EXPERIMENT_BINS; k++)
                assert_true(memcmp(&back.trials[i].loss[k], &there.trials[i].loss[k], sizeof(double)) == 0 ||
                            isnan(there.trials[i].loss[k]));
        assert_memory_equal(&back.trials[2].steady, &there.trials[2].steady, sizeof there.trials[2].steady);
        assert_true(back.plan.seed == UINT64_MAX - 1);
        assert_string_equal(back.command[0].list[3], "a | b\n\033[31mred");
        assert_null(back.command[0].list[4]);
        char *text = text_of(&there), *again = text_of(&back);
        assert_string_equal(text, again);
        free(text);
        free(again);
        hec_receipt_free(&there);
        hec_receipt_free(&back);
    }
}

/* B takes a tenth less: enough where so much is asked, or nothing is. */
TEST(least_saving) {
    const double least[] = {0, 0.05, 0.15};
    for (int i = 0; i < 3; i++) {
        struct hec_receipt there, back;
        const char *why_not;
        receipt_make(&there, 6);
        there.plan.saving_least = least[i];
        read_back(&there, &back);
        assert_int_equal(hec_receipt_proves(&back, &why_not), i < 2);
        assert_true(i < 2 || strstr(why_not, "--min-saving"));
        hec_receipt_free(&there);
        hec_receipt_free(&back);
    }
}

/* What helped most in the search is not worth a proof: it saves too little, or was measured too briefly. */
TEST(why_nothing_is_kept) {
    const struct {
        double joules;
        const char *says;
    } cases[] = {
        {0.99, "what helped most saves less than 2 % (--min-saving asks for less): tf32"},
        {0.44,
         "what helped most takes 56 % fewer joules, in so few blocks that it may be chance (--budget-seconds allows more)"}};
    for (int i = 0; i < 2; i++) {
        struct hec_report_style style = {.columns = 200};
        struct hec_try_report tried = {.receipt = &r, .headline = "", .old = ""};
        struct hec_receipt_tried base = {.outcome = HEC_TRIED_BASE,
                                         .trials = 2,
                                         .joules_per_unit = 1,
                                         .joules = {NAN, NAN, NAN},
                                         .rate = {NAN, NAN, NAN}};
        struct hec_receipt_tried better = {.levers = "tf32",
                                           .outcome = HEC_TRIED_BETTER,
                                           .trials = 2,
                                           .joules_per_unit = cases[i].joules,
                                           .joules = {NAN, cases[i].joules, NAN},
                                           .rate = {NAN, NAN, NAN}};
        make(0);
        r.plan.saving_least = 0.02;
        hec_receipt_add_tried(&r, &base);
        hec_receipt_add_tried(&r, &better);
        assert_int_equal(hec_try_terminal(&tried, &style, page()), 0);
        assert_non_null(strstr(hec_buf_text(&out), cases[i].says));
    }
}

TEST(environment) {
    make(2);
    assert_int_equal(r.environment.count, 3);
    assert_string_equal(r.environment.list[0].name, "CUDA_EMPTY"); /* in order of the names */
    assert_string_equal(hec_receipt_fact(&r.environment, "OMP_NUM_THREADS"), "4");
    assert_null(hec_receipt_fact(&r.environment, "PATH"));
    assert_int_equal(r.withheld.count, 1);
    assert_int_equal(hec_receipt_json(&r, page()), 0);
    SAYS("HF_TOKEN");
    SAYS_NOT("geheim");
}

static void assert_left(const char *value, const char *wanted) {
    int withheld = 0;
    char *kept = hec_receipt_without_secrets(value, &withheld);
    if (strcmp(kept, wanted) != 0)
        fail_msg("%s\n became %s\n not    %s", value, kept, wanted);
    assert_int_equal(withheld > 0, strcmp(value, wanted) != 0);
    free(kept);
}

/* What is left of a value; a secret has none of its own left. */
TEST(without_secrets) {
    static const struct {
        const char *value, *kept;
    } rows[] = {
        {"https://bob:geheim@hub.example/x?a=b@c", "https://[withheld]@hub.example/x?a=b@c"},
        {"a https://ghu16C7e@git.example b", "a https://[withheld]@git.example b"},
        {"ssh://git@github.com/a/b.git", "ssh://git@github.com/a/b.git"},
        {"Authorization: Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc-_1", "Authorization: Bearer [withheld]"},
        {"hf_abcdefghijk1mnop", "[withheld]"},
        {"from huggingface_hub import hf_hub_download", "from huggingface_hub import hf_hub_download"},
        {"hf_hub", "hf_hub"},
        {"--x=sk-proj-0123456789", "--x=[withheld]"},
        {"AKIAIOSFODNN7EXAMPLE", "[withheld]"},
        {"key wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "key wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"},
        {"p8Kx2QvTz7Lm4RbW9cYd1", "[withheld]"},
        {"0123456789abcdef0123456789abcdef01234567", "[withheld]"},
        {"meta-llama/Meta-Llama-3.1-8B-Instruct", "meta-llama/Meta-Llama-3.1-8B-Instruct"},
        {"DistributedDataParallel", "DistributedDataParallel"},
        {"GPU-5e3fa1b2-0000-1111-2222-333344445555", "GPU-5e3fa1b2-0000-1111-2222-333344445555"},
        {"expandable_segments:True,max_split_size_mb:128", "expandable_segments:True,max_split_size_mb:128"},
        {"/usr/lib/x86_64-linux-gnu/libjemalloc.so.2", "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"},
        {"import torch; print(torch.ones(1000000))", "import torch; print(torch.ones(1000000))"},
        {"", ""},
        /* a value by its name, within a text */
        {"xai-geheim99AB12cd lsv2_pt_geheim99ab12 PMAK-geheim99ab12", "[withheld] [withheld] [withheld]"},
        {"https://outlook.office.com/webhook/geheim99", "https://outlook.office.com/webhook/[withheld]"},
        {"docker login --password-stdin <<EOF\ngeheim\nEOF", "docker login --password-stdin <<EOF\n[withheld]\nEOF"},
        {"cat <<-'E' | docker login\ngeheim\nE\nx", "cat <<-'E' | docker login\n[withheld]\nE\nx"},
        {"python3 - <<EOF\nprint(1, 2)\nEOF", "python3 - <<EOF\nprint(1, 2)\nEOF"},
        {"./a --token=${T:-geheim99} --key=$K --token=${T} b", "./a --token=[withheld]} --key=$K --token=${T} b"},
        {"train --passcode geheim", "train --passcode [withheld]"},
        {"train --passkey=geheim", "train --passkey=[withheld]"},
        {"keytool -storepass geheim -keypass geheim", "keytool -storepass [withheld] -keypass [withheld]"},
        {"--access-code geheim --unlock-code geheim", "--access-code [withheld] --unlock-code [withheld]"},
        {"NCCL_CREDS=bob:geheim TORCH_PSW=geheim x", "NCCL_CREDS=[withheld] TORCH_PSW=[withheld] x"},
        {"mysql --password geheim -h x", "mysql --password [withheld] -h x"},
        {"export PGPASSWORD=geheim; psql", "export PGPASSWORD=[withheld]; psql"},
        {"-H 'Authorization: Bearer geheim99' x", "-H 'Authorization: Bearer [withheld]' x"},
        {"Cookie: a=geheim; b=geheim", "Cookie: [withheld]"},
        {"{\"user\": \"u\", \"password\": \"ge heim\"}", "{\"user\": \"u\", \"password\": \"[withheld]\"}"},
        {"{\\\"api_key\\\":\\\"geheim99\\\"}", "{\\\"api_key\\\":\\\"[withheld]\\\"}"},
        {"https://h/x?access_token=geheim99&y=1", "https://h/x?access_token=[withheld]&y=1"},
        {"Server=db;Password=geheim;Port=1", "Server=db;Password=[withheld];Port=1"},
        {"ftp bob:geheim@host", "ftp [withheld]@host"},
        {"AWS_SECRET_ACCESS_KEY='geheim' aws", "AWS_SECRET_ACCESS_KEY='[withheld]' aws"},
        {"x --token $HF_TOKEN", "x --token $HF_TOKEN"},
        {"x --max-tokens 128 --tokenizer bert-base-cased", "x --max-tokens 128 --tokenizer bert-base-cased"},
        {"git@github.com:a/b nvcr.io/a:1@sha256:abc", "git@github.com:a/b nvcr.io/a:1@sha256:abc"},
        {"sorted(x, key=function)", "sorted(x, key=function)"},
        {"os.environ[\"WANDB_API_KEY\"]=\"geheim99\"", "os.environ[\"WANDB_API_KEY\"]=\"[withheld]\""},
        {"os.putenv('HF_TOKEN', 'geheim99')", "os.putenv('HF_TOKEN', '[withheld]')"},
        {"AccountKey=geheim99;EndpointSuffix=x", "AccountKey=[withheld];EndpointSuffix=x"},
        {"a -----BEGIN RSA PRIVATE KEY----- MIIgeheim -----END RSA PRIVATE KEY-----\nb", "a [withheld]\nb"},
        {"https://hooks.slack.com/services/T0/B0/geheim99", "https://hooks.slack.com/services/[withheld]"},
        {"https://api.telegram.org/bot1:geheim99", "https://api.telegram.org/bot[withheld]"},
        {"nvapi-geheim99abcdefg rk_live_geheim99abcd", "[withheld] [withheld]"},
        {"ldap://x/??bindpw=geheim99", "ldap://x/??bindpw=[withheld]"},
        /* options of programs */
        {"curl -u bob:geheim https://x", "curl -u bob:[withheld] https://x"},
        {"curl -ubob:geheim https://x", "curl -ubob:[withheld] https://x"},
        {"a; /usr/bin/mysql -u root -pgeheim db", "a; /usr/bin/mysql -u root -p[withheld] db"},
        {"sshpass -p geheim ssh -p 22 x", "sshpass -p [withheld] ssh -p 22 x"},
        {"docker run -p 8080:80 -u 1000:1000 x", "docker run -p 8080:80 -u 1000:1000 x"},
        {"echo $(docker login -p geheim)", "echo $(docker login -p [withheld])"},
        {"train.py -p 3 --pin-memory true -u 8:9", "train.py -p 3 --pin-memory true -u 8:9"},
        {"mysql -p'ge heim' -h x", "mysql -p'[withheld]' -h x"},
        /* options of one letter of programs that nobody knows: kept is what no secret looks like */
        {"train.py -p geheim", "train.py -p [withheld]"},
        {"python3 -u train.py -p geheim -b 256", "python3 -u train.py -p [withheld] -b 256"},
        {"python3.11 -m my.tool -P 'ge heim' x", "python3.11 -m my.tool -P '[withheld]' x"},
        {"./train -pgeheim9", "./train -p[withheld]"},
        {"env A=1 nice -n 5 mytrain -k geheim", "env A=1 nice -n 5 mytrain -k [withheld]"},
        {"cd x && mytrain -w geheim | tee log", "cd x && mytrain -w [withheld] | tee log"},
        {"sh -c 'mytrain -p geheim'", "sh -c 'mytrain -p [withheld]'"},
        {"x=$(mytrain -p geheim)", "x=$(mytrain -p [withheld])"},
        {"srun -p gpu -w node7 train.py -p geheim", "srun -p gpu -w node7 train.py -p [withheld]"},
        {"torchrun --nproc-per-node 2 train.py -W geheim", "torchrun --nproc-per-node 2 train.py -W [withheld]"},
        {"train.py -u bob:geheim", "train.py -u bob:[withheld]"},
        {"tool -U bob%geheim", "tool -U bob%[withheld]"},
        {"tool -u bob,geheim host", "tool -u bob,[withheld] host"},
        {"tool -l bob:geheim9", "tool -l bob:[withheld]"},
        {"train.py -p 8080 -k 5 -w 1e-4 -p 16:9 -k 0,1 -w 8G", "train.py -p 8080 -k 5 -w 1e-4 -p 16:9 -k 0,1 -w 8G"},
        {"train.py -p ./out -k /data/x -w ../y -p w.pt -P ~/z", "train.py -p ./out -k /data/x -w ../y -p w.pt -P ~/z"},
        {"train.py -p bf16 -k true -w $W -p -v", "train.py -p bf16 -k true -w $W -p -v"},
        {"train.py -a resnet50 -b 256 -j 4 -m bert-base", "train.py -a resnet50 -b 256 -j 4 -m bert-base"},
        {"./train -precision bf16 -prefetch -warm-up x", "./train -precision bf16 -prefetch -warm-up x"},
        {"mkdir -p a/b; cp -p a b; sort -k x; grep -w word f", "mkdir -p a/b; cp -p a b; sort -k x; grep -w word f"},
        {"python3 -c 'print(a -k b); c -p d'", "python3 -c 'print(a -k b); c -p d'"},
        /* who logs in */
        {"train.py --login bob:geheim", "train.py --login bob:[withheld]"},
        {"train.py --login=bob:geheim --db-user 'bob:ge heim'",
         "train.py --login=bob:[withheld] --db-user 'bob:[withheld]'"},
        {"x --user bob --account a/b --user 1000:1000", "x --user bob --account a/b --user 1000:1000"},
        {"x --user-agent Mozilla/5.0 --identity ssh://x", "x --user-agent Mozilla/5.0 --identity ssh://x"},
        /* on the input of what reads a password, and short names */
        {"echo geheim | docker login -u bob x --password-stdin",
         "echo [withheld] | docker login -u bob x --password-stdin"},
        {"printf '%s' 'ge heim' | sudo -S true", "printf [withheld] | sudo -S true"},
        {"sudo -S true <<< 'ge heim'", "sudo -S true <<< [withheld]"},
        {"echo $PASSWORD | docker login --password-stdin; echo a | wc",
         "echo $PASSWORD | docker login --password-stdin; echo a | wc"},
        {"x --pass gehe --pwd gehe --pin 1234 --otp 123456",
         "x --pass [withheld] --pwd [withheld] --pin [withheld] --otp [withheld]"},
        {"ffmpeg -pass 1 --passes 20 --pin 1", "ffmpeg -pass 1 --passes 20 --pin 1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_left(rows[i].value, rows[i].kept);
}

/* Ten of each kind that were thought of later: no text of theirs is left, and what stands beside it is. */
TEST(more_secrets_of_each_kind) {
    static const struct {
        const char *value, *kept;
    } rows[] = {
        /* addresses */
        {"x https://bob:ge/geheim@host/y", "x https://[withheld]@host/y"},
        {"x https://bob:geheim#1@host", "x https://[withheld]@host"},
        {"x https://bob:geheim?@host", "x https://[withheld]@host"},
        {"x=https%3A%2F%2Fbob:geheim%40host/x", "x=https%3A%2F%2F[withheld]%40host/x"},
        {"x=https%3a%2f%2fgeheim9%40host/x", "x=https%3a%2f%2f[withheld]%40host/x"},
        {"jdbc:oracle:thin:bob/geheim@h:1521/x", "jdbc:oracle:thin:[withheld]@h:1521/x"},
        {"https://hooks.zapier.com/hooks/catch/1/geheim99", "https://hooks.zapier.com/hooks/catch/[withheld]"},
        {"redis://:geheim@h:6379/0", "redis://[withheld]@h:6379/0"},
        {"https://a.blob.core.windows.net/c?sv=2020&sig=geheim99%3D&se=2",
         "https://a.blob.core.windows.net/c?sv=2020&sig=[withheld]&se=2"},
        {"https://h/x#access_token=geheim99", "https://h/x#access_token=[withheld]"},
        {"http://host:8080/a@b?c=d#e docker://ubuntu:22.04", "http://host:8080/a@b?c=d#e docker://ubuntu:22.04"},
        /* git remotes */
        {"https://oauth2:geheim@gitlab.com/a/b.git", "https://[withheld]@gitlab.com/a/b.git"},
        {"https://x-access-token:geheim99@github.com/a/b", "https://[withheld]@github.com/a/b"},
        {"https://geheim99@github.com/a/b", "https://[withheld]@github.com/a/b"},
        {"ssh://bob:geheim99@host:22/a", "ssh://[withheld]@host:22/a"},
        {"git+https://geheim99@github.com/a/b", "git+https://[withheld]@github.com/a/b"},
        {"git+ssh://bob:geheim99@host/a", "git+ssh://[withheld]@host/a"},
        {"https://gitlab-ci-token:geheim/1@gitlab.com/a", "https://[withheld]@gitlab.com/a"},
        {"https://bob:p%40geheim@dev.azure.com/o/p/_git/r", "https://[withheld]@dev.azure.com/o/p/_git/r"},
        {"bob:geheim99@host:a/b.git", "[withheld]@host:a/b.git"},
        {"https://bob:geheim@[2001:db8::1]:8443/a", "https://[withheld]@[2001:db8::1]:8443/a"},
        {"ssh://git@host:2222/a/b.git git@host:a/b.git", "ssh://git@host:2222/a/b.git git@host:a/b.git"},
        /* words of programs */
        {"wandb login geheim99", "wandb login [withheld]"},
        {"wandb login --relogin geheim99", "wandb login --relogin [withheld]"},
        {"wandb login && python3 train.py", "wandb login && python3 train.py"},
        {"vault login geheim99", "vault login [withheld]"},
        {"mysqladmin -u root password geheim", "mysqladmin -u root password [withheld]"},
        {"aws configure set aws_secret_access_key geheim", "aws configure set aws_secret_access_key [withheld]"},
        {"aws configure set aws_session_token geheim", "aws configure set aws_session_token [withheld]"},
        {"machine h login bob password geheim", "machine h login bob password [withheld]"},
        {"ssh-keygen -t ed25519 -N 'ge heim' -f x", "ssh-keygen -t ed25519 -N '[withheld]' -f x"},
        {"curl -b session=geheim x", "curl -b [withheld] x"},
        {"echo geheim | kinit bob", "echo [withheld] | kinit bob"},
        {"printf geheim | cryptsetup open x y", "printf [withheld] | cryptsetup open x y"},
        /* names */
        {"x --mnemonic 'geheim geheim'", "x --mnemonic '[withheld]'"},
        {"x --seed-phrase 'geheim geheim'", "x --seed-phrase '[withheld]'"},
        {"x --hftoken geheim99", "x --hftoken [withheld]"},
        {"x --apiToken=geheim99", "x --apiToken=[withheld]"},
        {"x --authtoken geheim99", "x --authtoken [withheld]"},
        {"x --kennwort geheim", "x --kennwort [withheld]"},
        {"x --mot-de-passe geheim", "x --mot-de-passe [withheld]"},
        {"x --senha=geheim", "x --senha=[withheld]"},
        {"x SESSION_ID=geheim99", "x SESSION_ID=[withheld]"},
        {"x --session-id geheim99", "x --session-id [withheld]"},
        {"x --csrf geheim99", "x --csrf [withheld]"},
        {"x --seed 42 --session 3 --pad-token x", "x --seed 42 --session 3 --pad-token x"},
        /* a name and its value without a sign */
        {"setenv HF_TOKEN geheim99; x", "setenv HF_TOKEN [withheld]; x"},
        {"set -gx PASSWORD geheim", "set -gx PASSWORD [withheld]"},
        {"x --set hub_token geheim99 --set lr 1e-4", "x --set hub_token [withheld] --set lr 1e-4"},
        {"wandb config set api_key geheim99", "wandb config set api_key [withheld]"},
        {"redis-cli set db_password 'ge heim'", "redis-cli set db_password '[withheld]'"},
        {"redis-cli config set requirepass geheim", "redis-cli config set requirepass [withheld]"},
        {"set PASSWORD $1; set -e; x --set a b", "set PASSWORD $1; set -e; x --set a b"},
        /* words that no option names */
        {"htpasswd -b f bob geheim", "htpasswd -b f [withheld] [withheld]"},
        {"htpasswd -nb bob geheim; cat a b c", "htpasswd -nb bob [withheld]; cat a b c"},
        {"sqlplus bob/geheim@db @x.sql", "sqlplus bob/[withheld] @x.sql"},
        {"rman target bob/geheim", "rman target bob/[withheld]"},
        {"smbclient //h/s geheim -d 3 -U bob", "smbclient //h/s [withheld] -d 3 -U bob"},
        {"sudo rabbitmqctl add_user bob geheim", "sudo rabbitmqctl add_user bob [withheld]"},
        {"mc alias set a http://h bob geheim", "mc alias set a http://h [withheld] [withheld]"},
        {"nmcli dev wifi connect x password geheim", "nmcli dev wifi connect x password [withheld]"},
        {"kubectl create secret generic x --from-literal=a=geheim --from-literal b=geheim",
         "kubectl create secret generic x --from-literal=a=[withheld] --from-literal b=[withheld]"},
        {"gh secret set X --body geheim", "gh secret set X --body [withheld]"},
        {"psql -c \"ALTER USER bob WITH PASSWORD 'geheim'\"", "psql -c \"ALTER USER bob WITH PASSWORD '[withheld]'\""},
        {"mysql -e \"create user bob identified by 'ge heim'\"",
         "mysql -e \"create user bob identified by '[withheld]'\""},
        /* written as addresses write it, and code */
        {"https://h/x?%61ccess_token=geheim99&y=1", "https://h/x?%61ccess_token=[withheld]&y=1"},
        {"https://h/x?access%5Ftoken%3Dgeheim99", "https://h/x?access%5Ftoken%3D[withheld]"},
        {"https://h/x?q={%22password%22:%22geheim%22}", "https://h/x?q={%22password%22:%22[withheld]"},
        {"python3 -c \"huggingface_hub.login('geheim'); x()\"",
         "python3 -c \"huggingface_hub.login('[withheld]'); x()\""},
        {"smtp.login('bob', 'ge heim')", "smtp.login('[withheld]')"},
        {"requests.get(u, auth=('bob', 'geheim'))", "requests.get(u, auth=('[withheld]'))"},
        {"HTTPBasicAuth(\"bob\", \"geheim\")", "HTTPBasicAuth(\"[withheld]\")"},
        {"login(); login(name); f('login')", "login(); login(name); f('login')"},
        /* code */
        {"{'password' => 'ge heim'}", "{'password' => '[withheld]'}"},
        {":password => \"geheim\"", ":password => \"[withheld]\""},
        {"x password=>geheim", "x password=>[withheld]"},
        {"<password>geheim</password>", "<password>[withheld]</password>"},
        {"<x><apiKey>geheim99</apiKey></x>", "<x><apiKey>[withheld]</apiKey></x>"},
        {"wandb={api_key: geheim99, x: 1}", "wandb={api_key: [withheld]"},
        {"++wandb.key=geheim99", "++wandb.key=[withheld]"},
        {"-Djavax.net.ssl.keyStorePassword=geheim", "-Djavax.net.ssl.keyStorePassword=[withheld]"},
        {"openai.api_key = 'geheim99'", "openai.api_key = '[withheld]'"},
        {"environ.update(HF_TOKEN='geheim99')", "environ.update(HF_TOKEN='[withheld]')"},
        {"if password > 3 and keys<4: x >= 5", "if password > 3 and keys<4: x >= 5"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_left(rows[i].value, rows[i].kept);
}

TEST(names_of_secrets) {
    static const char *const secret[] = {
        "SLURM_JWT=abcdefgh", "HF_TOKEN=x",        "CUDA_PASS=hunter22", "NCCL_PWD=x",         "VLLM_API_KEY=k",
        "TORCH_COOKIE=c",     "OMP_BEARER=b",      "XLA_DSN=d",          "TF_USE_SIGNATURE=s", "PYTHON_REGISTRY_PAT=p",
        "NCCL_SESSION_ID=x",  "HF_HFTOKEN=x",      "TORCH_CSRF=x",       "TF_MNEMONIC=x",      "CUDA_KENNWORT=x",
        "OMP_SENHA=x",        "XLA_CREDENTIALS=x", "SLURM_OTP=1234",     "VLLM_APITOKEN=x",    "NCCL_SEED_PHRASE=x"};
    static const char *const kept[] = {"OMP_NUM_THREADS=4", "PYTHONPATH=/a:/b",   "TOKENIZERS_PARALLELISM=false",
                                       "SLURM_JOB_ID=77",   "LD_LIBRARY_PATH=/c", "TORCH_COMPILE_DEBUG=1"};
    for (int side = 0; side < 2; side++)
        for (size_t i = 0; i < (side ? sizeof kept / sizeof kept[0] : sizeof secret / sizeof secret[0]); i++) {
            const char *word = side ? kept[i] : secret[i];
            struct hec_receipt one = {.error = HEC_OK};
            hec_receipt_add_environment(&one, (char *const[]){(char *)(uintptr_t)word, NULL});
            assert_int_equal(one.environment.count, side);
            hec_receipt_free(&one);
        }
}

TEST(commands_without_secrets) {
    static const char *const words[] = {"env",
                                        "HF_TOKEN=hf_x1y2z3w4",
                                        "python3",
                                        "train.py",
                                        "--api-key",
                                        "abcdef",
                                        "--tokenizer",
                                        "bert-base-cased",
                                        "--password",
                                        "x",
                                        "--max-tokens",
                                        "128",
                                        "--key-dim",
                                        "64",
                                        "--token",
                                        "50256",
                                        "--wandb-key=k1k2k3",
                                        "--pass",
                                        "12345678",
                                        "PGPASSWORD=a b",
                                        "/usr/bin/curl",
                                        "--user",
                                        "bob:a b",
                                        "--password",
                                        "-Hunter2Zebra",
                                        "--password",
                                        "-v",
                                        NULL};
    static const char *const left[] = {"env",
                                       "HF_TOKEN=[withheld]",
                                       "python3",
                                       "train.py",
                                       "--api-key",
                                       "[withheld]",
                                       "--tokenizer",
                                       "bert-base-cased",
                                       "--password",
                                       "[withheld]",
                                       "--max-tokens",
                                       "128",
                                       "--key-dim",
                                       "64",
                                       "--token",
                                       "50256",
                                       "--wandb-key=[withheld]",
                                       "--pass",
                                       "[withheld]",
                                       "PGPASSWORD=[withheld]",
                                       "/usr/bin/curl",
                                       "--user",
                                       "bob:[withheld]",
                                       "--password",
                                       "[withheld]",
                                       "--password",
                                       "-v"};
    struct hec_receipt one = {.error = HEC_OK};
    hec_receipt_add_command(&one, 1, (char *const *)(uintptr_t)words);
    assert_int_equal(one.command[1].count, sizeof left / sizeof left[0]);
    for (int i = 0; i < one.command[1].count; i++)
        assert_string_equal(one.command[1].list[i], left[i]);
    assert_int_equal(one.withheld.count, 8);
    assert_string_equal(one.withheld.list[1], "word 6 of command B");
    assert_false(hec_receipt_has_commands(&one));
    hec_receipt_set_folder(&one, "/home/a/ghp_geheim0123456789");
    assert_string_equal(one.folder, "/home/a/[withheld]");
    assert_string_equal(one.withheld.list[one.withheld.count - 1], "the working folder");
    hec_receipt_free(&one);
}

/* docs/receipt.schema.json is what `hec verify --schema` prints, and names what is written. */
TEST(schema) {
    free(made(3));
    parse();
    assert_schema(hec_receipt_schema, "receipt", "receipt", false);
}

/* ---- for people ---- */

/* What a receipt says in Markdown and on a terminal: tests/golden/receipt.md; HEC_GOLDEN_UPDATE=1 writes it anew. */
TEST(pages) {
    const char *path = HEC_SOURCE_DIR "/tests/golden/receipt.md";
    const struct hec_report_style style = {.utf8 = true};
    char *kept;
    size_t length;
    make(4);
    snprintf(r.hec_version, sizeof r.hec_version, "0.0.0");
    assert_int_equal(hec_receipt_terminal(&r, &style, page()), 0);
    lines(80);
    assert_int_equal(hec_receipt_markdown(&r, page()), 0);
    hec_buf_puts(&out, "\n```\n");
    assert_int_equal(hec_receipt_terminal(&r, &style, &out), 0);
    SAYS_NOT("\033");
    hec_buf_puts(&out, "```\n");
    if (getenv("HEC_GOLDEN_UPDATE"))
        assert_int_equal(hec_kept_file_write(path, out.data, NULL), 0);
    assert_int_equal(hec_kept_file_read(path, 1 << 20, &kept, &length, NULL), 0);
    if (length != out.length || memcmp(kept, out.data, length) != 0)
        fail_msg("it is not what tests/golden/receipt.md says:\n%s", out.data);
    free(kept);
}

static void assert_quality(struct hec_quality q, const char *words) {
    char sentence[HEC_QUALITY_SENTENCE];
    q.margin = 0.1;
    if (strcmp(hec_quality_sentence(sentence, &q), words) != 0)
        fail_msg("\"%s\", not \"%s\"", sentence, words);
}

TEST(words) {
    struct hec_quality q = {.verdict = HEC_QUALITY_FAIL, .why = HEC_QUALITY_OFF, .part = HEC_QUALITY_END};
    q.parts[HEC_QUALITY_END] = (struct hec_quality_difference){0.234, 0.18, 0.288, true};
    assert_quality(
        q, "fail: the loss of B is off that of A at its end by +23 % (+18 to +29) of what A's loss falls by; the "
           "margin is 10 %");
    q.why = HEC_QUALITY_NOT_FINITE;
    assert_quality(q, "fail: losses of B are not finite, those of A are");
    q.verdict = HEC_QUALITY_CANNOT_JUDGE;
    for (q.why = HEC_QUALITY_NOTHING; q.why <= HEC_QUALITY_SPREAD; q.why++) { /* each says why */
        char sentence[HEC_QUALITY_SENTENCE];
        assert_true(strlen(hec_quality_sentence(sentence, &q)) > strlen("cannot judge: because"));
    }
    q.why = HEC_QUALITY_A_FLAT;
    assert_quality(
        q, "cannot judge: the loss of A does not fall by 1 % of itself and more than its reruns differ by; longer "
           "trials would help");
    struct hec_receipt paid = {.unit = "sample", .result = {.joules = {true, 2.34e6, 2e6, INFINITY}}};
    char line[HEC_RECEIPT_LINE];
    assert_string_equal(hec_receipt_paid(line, &paid),
                        "after 2.34 million samples by the joules saved (soonest 2 million, latest perhaps never)");
    paid.result.joules.shown = false;
    assert_string_equal(hec_receipt_paid(line, &paid), "never, as far as is shown: nothing is saved");
    paid.unit[0] = '\0';
    assert_string_equal(hec_receipt_paid(line, &paid), "not known: no unit of work is");
}

/* ---- every change is found ---- */

/* How many there are; their words are in `out`. */
static int objections_of(json_t *root) {
    struct hec_receipt receipt;
    struct hec_why why = {""};
    json_t *read;
    char *text = json_dumps(root, JSON_REAL_PRECISION(17));
    page();
    int count = hec_receipt_read(text, strlen(text), &receipt, &read, &why);
    if (!count) {
        count = hec_receipt_verify(&receipt, read, &out);
        hec_receipt_free(&receipt);
        json_decref(read);
    }
    free(text);
    return count;
}

static json_t *changed(json_t *value) {
    static const char *const words[] = {"A", "B", "better", "worse", "pass", "fail", "start", "end"};
    if (json_is_real(value))
        return json_real(json_real_value(value) * 1.001 + 1e-6);
    if (json_is_integer(value))
        return json_integer(json_integer_value(value) + 1);
    if (json_is_boolean(value))
        return json_boolean(!json_is_true(value));
    if (json_is_null(value))
        return json_real(0.25);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) /* one that the schema knows as well */
        if (strcmp(json_string_value(value), words[i]) == 0)
            return json_string(words[i ^ 1]);
    return json_sprintf("%s0", json_string_value(value));
}

/* Changes every plain value below `parent`, one after another; with a digest that fits too, as a forger would. */
static int tamper(json_t *root, json_t *parent, bool forge, int *unseen) {
    int count = 0;
    size_t size = json_is_array(parent) ? json_array_size(parent) : json_object_size(parent), i = 0;
    const char **keys = calloc(size + 1, sizeof *keys), *key;
    json_t *item;
    json_object_foreach(parent, key, item) keys[i++] = key;
    for (i = 0; i < size;
         i += json_is_array(parent) && size > 8 ? size - 1 : 1) { /* of losses the first and the last */
        json_t *value = json_is_array(parent) ? json_array_get(parent, i) : json_object_get(parent, keys[i]);
        if (json_is_array(value) || json_is_object(value)) {
            count += tamper(root, value, forge, unseen);
            continue;
        }
        json_t *kept = json_deep_copy(value), *digest = json_deep_copy(json_object_get(root, "digest"));
        json_t *new = changed(value);
        if (json_is_array(parent))
            json_array_set_new(parent, i, new);
        else
            json_object_set_new(parent, keys[i], new);
        char text[HEC_SHA256_TEXT];
        if (forge && hec_receipt_digest(root, text) == 0)
            json_object_set_new(root, "digest", json_string(text));
        if (objections_of(root) == 0)
            (*unseen)++;
        json_object_set_new(root, "digest", digest);
        if (json_is_array(parent))
            json_array_set_new(parent, i, kept);
        else
            json_object_set_new(parent, keys[i], kept);
        count++;
    }
    free(keys);
    return count;
}

TEST(every_change_is_found) {
    char *text = made(2);
    int unseen = 0;
    json_t *root = json_loads(text, 0, NULL);
    assert_int_equal(objections_of(root), 0);
    assert_true(tamper(root, root, false, &unseen) > 150);
    assert_int_equal(unseen, 0);
    /* what follows from the trials is found even where the digest was made anew */
    assert_true(tamper(root, json_object_get(root, "verdict"), true, &unseen) > 60);
    assert_true(tamper(root, json_object_get(root, "method"), true, &unseen) > 1);
    assert_int_equal(unseen, 0);
    json_t *ratio = json_object_get(json_object_get(json_object_get(root, "verdict"), "look"), "ratio");
    json_array_set_new(ratio, 1, json_real(0.5));
    json_t *verdict = json_object_get(root, "verdict");
    json_object_set_new(verdict, "sentence",
                        json_sprintf("%s!", json_string_value(json_object_get(verdict, "sentence"))));
    objections_of(root);
    SAYS("!\", its plan"); /* what differs is shown, at the end of a long sentence too */
    SAYS("digest: the receipt was changed",
         "verdict.look.ratio[1]: the receipt says 0.5, its plan and trials give 0.8");
    json_decref(root);
    free(text);
}

/* Older builds wrote less, and judged pairs for small effects alone. */
TEST(an_older_one_holds) {
    char *text = made(6), digest[HEC_SHA256_TEXT];
    json_t *root = json_loads(text, 0, NULL), *plan = json_object_get(root, "plan");
    assert_int_equal(json_object_del(root, "blocks"), 0);
    assert_int_equal(json_object_del(plan, "large_effects"), 0);
    assert_int_equal(json_object_del(plan, "saving_least"), 0);
    assert_int_equal(hec_receipt_digest(root, digest), 0);
    json_object_set_new(root, "digest", json_string(digest));
    assert_int_equal(objections_of(root), 0);
    json_decref(root);
    free(text);
}

/* Two trials swapped, one pair dropped, one pair more than planned: a result that was picked. */
TEST(order_is_that_of_the_seed) {
    static const char *const said[] = {"the order of the seed asks for", "the order of the seed asks for",
                                       "more pairs than the 4",
                                       "1 warm-ups before the first pair, and the plan says 2"};
    for (int way = 0; way < 4; way++) {
        make(4);
        struct hec_experiment_trial *t = r.trials, kept = t[2];
        if (way == 0) {
            t[2] = t[3];
            t[3] = kept;
        } else if (way == 1) {
            memmove(t + 4, t + 6, (size_t)(r.trial_count - 6) * sizeof *t);
            r.trial_count -= 2;
        } else if (way == 2) {
            for (int i = 8; i < 10; i++) {
                kept = t[2 + (hec_sequential_b_first(r.plan.seed, 4) ^ (i & 1))];
                kept.pair = 4;
                kept.side = hec_sequential_b_first(r.plan.seed, 4) ^ (i & 1);
                hec_receipt_add_trial(&r, &kept);
                t = r.trials;
            }
        } else {
            memmove(t, t + 1, (size_t)(r.trial_count - 1) * sizeof *t);
            r.trial_count--;
        }
        hec_receipt_judge(&r);
        assert_int_equal(hec_receipt_json(&r, page()), 0);
        assert_true(objections_of(parse()) > 0);
        SAYS(said[way]);
        SAYS_NOT("digest");
    }
}

/* ---- what is no receipt ---- */

static void assert_refused(const char *text, int err, const char *words) {
    struct hec_receipt receipt;
    struct hec_why why = {""};
    json_t *root;
    int got = hec_receipt_read(text, strlen(text), &receipt, &root, &why);
    if (got != err || !strstr(why.text, words))
        fail_msg("%d \"%s\", not %d \"%s\"", got, why.text, err, words);
    assert_null(root);
    assert_true(receipt.trials == NULL && receipt.command[0].list == NULL);
}

/* The text with the first `from` replaced. */
static void assert_refused_with(const char *from, const char *to, int err, const char *words) {
    char *text = made(2), *at = strstr(text, from), *with = NULL;
    assert_non_null(at);
    assert_true(asprintf(&with, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from)) > 0);
    assert_refused(with, err, words);
    free(with);
    free(text);
}

TEST(hostile) {
    assert_refused("", HEC_ERR_CORRUPT, "no JSON");
    assert_refused("{", HEC_ERR_CORRUPT, "line 1");
    assert_refused("[]", HEC_ERR_CORRUPT, "no receipt of hec");
    assert_refused("{\"schema\": 5}", HEC_ERR_CORRUPT, "no receipt of hec");
    assert_refused("{\"schema\": \"hec.report/2\"}", HEC_ERR_CORRUPT, "no receipt of hec");
    assert_refused("{\"schema\": \"hec.receipt/1\"}", HEC_ERR_CORRUPT, "created is missing");
    static const struct {
        const char *from, *to; /* what is replaced in a good one */
        const char *words;
    } cases[] = {
        {"\"seed\": \"", "\"seed\": \"9", "plan.seed is no number of 64 bits"},
        {"\"seed\": \"", "\"seed\": \"-", "plan.seed"},
        {"\"pairs_most\": 0", "\"pairs_most\": 99999999999", "pairs_most is too large"},
        {"\"pairs_most\": 0", "\"pairs_most\": 1e99999", "no JSON"},
        {"\"pairs_most\": 0", "\"pairs_most\": 0.5", "plan.pairs_most is not integer"},
        {"\"margin\": 0.0", "\"margin\": null", "no precision, no margin or no time before it"},
        {"\"hooks\": true", "\"hooks\": 1", "conditions.hooks is not boolean"},
        {"\"hooks\": true", "\"hooks\": true, \"hooks\": true", "no JSON"},
        {"\"hooks\": true", "\"hooks\": true, \"more\": 1", "conditions.more is not known"},
        {"\"writes\": \"disk\"", "\"writes\": \"moon\"", "none of the words"},
        {"\"pair\": null", "\"pair\": -1", "trials[0].pair is out of range"},
        {"\"loss\": [", "\"loss\": [1,", "trials[0].loss has too few or too many"},
        {"\"loss\": [", "\"loss\": [[", "no JSON"},
        {"\"created\": \"", "\"created\": \"0000000000000000000000000000000000000000", "created is too long"},
        {"\"python3\"", "\"\\u0000\"", "no JSON"},
        {"\"python3\"", "{}", "commands.a[0] is not string"},
        {"sample", "s\xff", "no JSON"},
    };
    assert_refused_with("hec.receipt/1", "hec.receipt/2", HEC_ERR_VERSION, "another format");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_refused_with(cases[i].from, cases[i].to, HEC_ERR_CORRUPT, cases[i].words);
}

TEST(too_many_trials) {
    make(2);
    while (!r.error)
        hec_receipt_add_trial(&r, &r.trials[0]);
    assert_int_equal(r.error, HEC_ERR_LIMIT);
    assert_int_equal(r.trial_count, HEC_RECEIPT_TRIALS_MOST);
    assert_int_equal(hec_receipt_json(&r, page()), HEC_ERR_LIMIT); /* what is not whole is not written */
}
