import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/** Sends lines of standard input to partition 0 of a topic: BROKER TOPIC CODEC none|commit|abort. */
public class Produce {
  public static void main(String[] args) throws Exception {
    Properties settings = new Properties();
    settings.put("bootstrap.servers", args[0]);
    settings.put("compression.type", args[2]);
    settings.put("linger.ms", "50");
    settings.put("batch.size", "16000000");
    settings.put("buffer.memory", "100000000");
    settings.put("max.request.size", "100000000");
    if (!args[3].equals("none")) settings.put("transactional.id", "produce-" + args[1]);
    StringSerializer text = new StringSerializer();
    try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings, text, text)) {
      if (!args[3].equals("none")) {
        producer.initTransactions();
        producer.beginTransaction();
      }
      BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        producer.send(new ProducerRecord<>(args[1], 0, null, line));
      }
      producer.flush();
      if (args[3].equals("commit")) producer.commitTransaction();
      if (args[3].equals("abort")) producer.abortTransaction();
    }
  }
}
